"""Endpoints: listed, made, read, changed and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError as Invalid
from django.db.models import Prefetch
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import status
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.pagination import DESCRIBED
from timeline.api.preconditions import RequestOutcome, answer_once, not_modified
from timeline.api.schema import IF_NONE_MATCH, REPEATABLE, UNCHANGED, answers, described
from timeline.store.isolation_level import atomic
from timeline.webhooks.api.base import IF_MATCH, TAG, WebhooksView, answer_page, check_seen, key_in, moment_in, tag_of
from timeline.webhooks.api.serializers import (
    DeliveryDetailSerializer,
    DeliveryPageSerializer,
    DeliverySerializer,
    EndpointBody,
    EndpointPageSerializer,
    EndpointSerializer,
    EndpointWithSecretSerializer,
)
from timeline.webhooks.disabling import delete_endpoints
from timeline.webhooks.models import Attempt, Endpoint, State
from timeline.webhooks.opening import check_endpoint, open_endpoint

_PAGES: Final = [
    OpenApiParameter("cursor", {**DESCRIBED["cursor"], "format": "uuid"}),
    OpenApiParameter("limit", DESCRIBED["limit"]),
]

_LARGEST: Final = 2**63 - 1  # Keys of rows.
_MOMENT: Final = {"type": "string", "format": "date-time"}
_QUERY: Final = [
    OpenApiParameter("endpoint", {"type": "string", "format": "uuid"}, description="Those to this one."),
    OpenApiParameter("state", str, enum=sorted(State.values), description="Those in this state."),
    OpenApiParameter("since", _MOMENT, description="Those written from this moment on."),
    OpenApiParameter("until", _MOMENT, description="Those written before this moment."),
    OpenApiParameter("cursor", {"type": "string", "pattern": "^[0-9]{1,18}$", "description": "From a link to a page."}),
    OpenApiParameter("limit", DESCRIBED["limit"]),
]


class Endpoints(WebhooksView):
    parameters = ("cursor", "limit")

    @described(operation_id="webhook_endpoints", parameters=_PAGES, responses=answers(ok=EndpointPageSerializer))
    def get(self, request: Request) -> Response:
        """List endpoints, in the order in which they were made."""
        endpoints = self.endpoints().order_by("pk")
        if "cursor" in request.query_params:
            endpoints = endpoints.filter(pk__gt=key_in(request, "cursor"))
        return answer_page(request, endpoints, self.shown)

    @described(
        operation_id="webhook_endpoint_create",
        request=EndpointBody,
        parameters=REPEATABLE,
        responses=answers(413, 415, 422, created=EndpointWithSecretSerializer),
    )
    def post(self, request: Request) -> Response:
        """Make an endpoint. Its secret is in this answer, and nowhere else."""
        self.demand("add_endpoint")
        body = EndpointBody(data=request.data)
        body.is_valid(raise_exception=True)
        return answer_with_secret(request, partial(self._open, body.validated_data), using=self.get_using())

    def _open(self, given: dict[str, Any]) -> tuple[RequestOutcome, str]:
        try:
            endpoint, secret = open_endpoint(**given, now=self.now, using=self.get_using())
        except Invalid as error:
            raise ValidationError(error.message_dict) from None
        return RequestOutcome(self.told(endpoint), status.HTTP_201_CREATED), secret


class OneEndpoint(WebhooksView):
    @described(
        operation_id="webhook_endpoint",
        parameters=[IF_NONE_MATCH, TAG],
        responses={**answers(404, ok=EndpointSerializer), 304: UNCHANGED},
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """Read an endpoint."""
        answer = Response(self.told(self.endpoints().get(pk=pk)))
        not_modified(request, answer, tag_of(answer.data))
        return answer

    @described(
        operation_id="webhook_endpoint_change",
        request=EndpointBody(partial=True),
        parameters=[IF_MATCH],
        responses=answers(404, 412, 413, 415, ok=EndpointSerializer),
    )
    def patch(self, request: Request, pk: UUID) -> Response:
        """Change what is given of an endpoint. What waits is sent to the new URL."""
        self.endpoints().get(pk=pk)
        self.demand("change_endpoint")
        body = EndpointBody(data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        with atomic(using=self.get_using()):
            endpoint = self.locked(pk)
            check_seen(request, self.told(endpoint))
            for name, value in body.validated_data.items():
                setattr(endpoint, name, value)
            _check_given(endpoint, body.validated_data)
            if body.validated_data:
                endpoint.save(using=self.get_using(), update_fields=sorted(body.validated_data))
        return Response(self.told(endpoint))

    @described(
        operation_id="webhook_endpoint_delete",
        request=None,
        parameters=[IF_MATCH],
        responses={**answers(404, 412), 204: OpenApiResponse(description="It is gone.")},
    )
    def delete(self, request: Request, pk: UUID) -> Response:
        """Delete an endpoint, with its deliveries and their log. Disable it to keep them."""
        self.endpoints().get(pk=pk)
        self.demand("delete_endpoint")
        with atomic(using=self.get_using()):
            check_seen(request, self.told(self.locked(pk, to_delete=True)))
            delete_endpoints([pk], using=self.get_using())
        return Response(status=status.HTTP_204_NO_CONTENT)


def _check_given(endpoint: Endpoint, given: Mapping[str, Any]) -> None:
    """See that what is given may be. What was there before is looked at again at each delivery."""
    try:
        check_endpoint(endpoint.url, endpoint.topics)
    except Invalid as error:
        if problems := {name: said for name, said in error.message_dict.items() if name in given}:
            raise ValidationError(problems) from None


def answer_with_secret(request: Request, act: Any, *, using: str) -> Response:
    """Answer what has got a secret; what is kept for an ``Idempotency-Key`` is without it. ``act`` gives outcome and secret."""
    secrets: list[str] = []

    def once() -> RequestOutcome:
        outcome, secret = act()
        secrets.append(secret)
        return RequestOutcome(outcome.said, outcome.status)

    return answer_once(
        request, once, lambda said, _again: {**said, "secret": secrets[0] if secrets else None}, using=using
    )


class Deliveries(WebhooksView):
    parameters = ("endpoint", "state", "since", "until", "cursor", "limit")

    @described(operation_id="webhook_deliveries", parameters=_QUERY, responses=answers(ok=DeliveryPageSerializer))
    def get(self, request: Request) -> Response:
        """List deliveries, the last one first."""
        asked, rows = request.query_params, self.deliveries().order_by("-pk")
        if "endpoint" in asked:
            rows = rows.filter(endpoint=key_in(request, "endpoint"))
        if "state" in asked:
            if asked["state"] not in State.values:
                raise ValidationError(
                    {"state": _("Give one of %(names)s.") % {"names": ", ".join(sorted(State.values))}}
                )
            rows = rows.filter(state=asked["state"])
        if "since" in asked:
            rows = rows.filter(created_at__gte=moment_in(request, "since"))
        if "until" in asked:
            rows = rows.filter(created_at__lt=moment_in(request, "until"))
        if "cursor" in asked:
            rows = rows.filter(pk__lt=_place(asked["cursor"]))
        return answer_page(request, rows, DeliverySerializer)


class OneDelivery(WebhooksView):
    @described(operation_id="webhook_delivery", responses=answers(404, ok=DeliveryDetailSerializer))
    def get(self, request: Request, pk: int) -> Response:  # noqa: ARG002
        """Read a delivery, with what is sent and the log of its tries."""
        if pk > _LARGEST:
            raise NotFound
        tries = Prefetch("tries", Attempt.objects.using(self.get_using()).order_by("pk"))
        return Response(DeliveryDetailSerializer(self.deliveries().prefetch_related(tries).get(pk=pk)).data)


def _place(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 18):
        raise ValidationError({"cursor": _("Take it from a link to a next page.")})
    return int(cursor)
