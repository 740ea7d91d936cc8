"""The log of deliveries."""

from __future__ import annotations

from typing import Final

from django.db.models import Prefetch
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.pagination import DESCRIBED
from timeline.api.schema import answers, described
from timeline.webhooks.api.base import WebhooksView, answer_page, key_in, moment_in
from timeline.webhooks.api.serializers import (
    DeliveryDetailSerializer,
    DeliveryPageSerializer,
    DeliverySerializer,
)
from timeline.webhooks.models import Attempt, State

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


class Deliveries(WebhooksView):
    """Many of them."""

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
    """One of them."""

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
