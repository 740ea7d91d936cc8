"""What the views have in common: who may see and do what, and pages."""

from __future__ import annotations

import re
from datetime import datetime
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException, PermissionDenied, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from timeline.api.base import TimelineAPI
from timeline.api.fields import nearest, read_instant
from timeline.api.preconditions import TAGS
from timeline.webhooks.api.serializers import EndpointSerializer
from timeline.webhooks.disabling import lock_endpoints
from timeline.webhooks.models import Delivery, DeliveryQuerySet, Endpoint

_SEEING_ENDPOINTS: Final = ("view_endpoint", "change_endpoint")

IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": TAGS},
    OpenApiParameter.HEADER,
    description="The endpoint's `ETag`: nothing is done if it has changed since.",
)
TAG: Final = OpenApiParameter(
    "ETag", {"type": "string"}, OpenApiParameter.HEADER, response=[200, 304], description="For `If-Match`."
)


class WebhooksView(TimelineAPI):
    """Base. Staff see and do what Django's permissions of the models of this app say; nobody else sees anything."""

    def may(self, *permissions: str) -> bool:
        user = self.request.user
        has = (user.has_perm(f"timeline_webhooks.{permission}") for permission in permissions)
        return bool(getattr(user, "is_staff", False)) and any(has)

    def demand(self, permission: str) -> None:
        """``PermissionDenied`` unless who asks has this permission."""
        if not self.may(permission):
            raise PermissionDenied

    def endpoints(self) -> QuerySet[Endpoint]:
        """The endpoints that who asks may see."""
        endpoints = Endpoint.objects.using(self.get_using())
        return endpoints.all() if self.may(*_SEEING_ENDPOINTS) else endpoints.none()

    def shown(self, endpoints: Any, **options: Any) -> EndpointSerializer:
        """Endpoints as they are answered: with their URL for who may change them, else with its host."""
        return EndpointSerializer(endpoints, context={"whole": self.may("change_endpoint")}, **options)

    def told(self, endpoint: Endpoint) -> Any:
        return self.shown(endpoint).data

    def deliveries(self) -> DeliveryQuerySet:
        """The deliveries that who asks may see."""
        deliveries = Delivery.objects.using(self.get_using())
        return deliveries.all() if self.may("view_delivery") else deliveries.none()

    def locked(self, pk: UUID, *, to_delete: bool = False) -> Endpoint:
        """Read an endpoint to change or delete, in a transaction; ``Endpoint.DoesNotExist``."""
        found = lock_endpoints([pk], to_delete=to_delete, using=self.get_using())
        if pk not in found:
            raise Endpoint.DoesNotExist
        return found[pk]


def key_in(request: Request, name: str) -> UUID:
    try:
        return UUID(request.query_params[name])
    except ValueError:
        raise ValidationError({name: _("Give an id, as the API shows it.")}) from None


def moment_in(request: Request, name: str) -> datetime:
    if (moment := read_instant(request.query_params[name])) is None:
        raise ValidationError({name: _("Give a moment with its offset, as in 2026-03-01T09:00:00Z.")})
    return nearest(moment)


class ChangedMeanwhile(APIException):
    """It is not as the one who asks has seen it."""

    status_code = 412
    default_detail = gettext_lazy("It has changed since you looked. Read it again.")


def tag_of(shown: Any) -> str:
    """Name a state of an endpoint by all that is shown of it."""
    return f'"{sha256(JSONRenderer().render(shown)).hexdigest()[:32]}"'


def check_seen(request: Request, shown: Any) -> None:
    """See that a locked endpoint is as who asks has seen it, else ``ChangedMeanwhile``; ``ValidationError`` for a wrong tag."""
    given = request.headers.get("If-Match", "*").strip()
    if not re.fullmatch(TAGS, given):
        raise ValidationError({"If-Match": _("Give an endpoint's ETag.")})
    if given != "*" and tag_of(shown) not in [part.strip() for part in given.split(",")]:
        raise ChangedMeanwhile
