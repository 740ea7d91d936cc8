"""Pages: at most a hundred rows, and a link to the next, which begins after the last row shown."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.fields import nearest, read_instant
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.reading.reason_texts import recall
from timeline.store.earliest import FirstAsked, first_page

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.views import APIView

    from timeline.models.task import ScheduledTaskQuerySet

LONGEST: Final = 100
USUAL: Final = 50
ORDERINGS: Final = ("scheduled_at", "-scheduled_at")

DESCRIBED: Final[dict[str, dict[str, Any]]] = {
    "cursor": {"type": "string", "minLength": 1, "description": "From the link to a next page."},
    "limit": {"type": "integer", "minimum": 1, "maximum": LONGEST, "default": USUAL},
    "ordering": {"type": "string", "enum": list(ORDERINGS), "default": ORDERINGS[0]},
}


class Place(NamedTuple):
    """Where a page ended: due time and key of its last row."""

    at: datetime
    pk: UUID

    def __str__(self) -> str:
        return urlsafe_b64encode(f"{self.at.isoformat()} {self.pk.hex}".encode()).decode().rstrip("=")


class Page(NamedTuple):
    """Rows in order, and the address of the next page; None: these are the last."""

    tasks: list[ScheduledTask]
    next: str | None


def page_of(
    tasks: ScheduledTaskQuerySet,
    request: Request,
    ordering: str,
    states: Collection[str],
    *,
    kinds: Callable[[], Collection[str]] | None = None,
    **parameters: str,
) -> Page:
    """Read the page asked for, in one query (of a timeline two); ``parameters`` go into its link. ``ValidationError``."""
    limit = limit_of(request)
    latest = ordering != ORDERINGS[0]
    following = _after(tasks, _place(request), latest)
    found = first_page(following, FirstAsked(states, latest), limit + 1, kinds=kinds)
    if len(found) <= limit:
        return Page(found, None)
    last = found[limit - 1]
    return Page(found[:limit], _link(request, **parameters, cursor=str(Place(last.scheduled_at, last.pk))))


def answer_page(request: Request, rows: QuerySet[Any], serializer: Any) -> Response:
    """Answer one page of rows, whose last key is the cursor of the link to the next."""
    limit = limit_of(request)
    found = list(rows[: limit + 1])
    link = _link(request, cursor=str(found[limit - 1].pk)) if len(found) > limit else None
    return Response({"next": link, "results": serializer(found[:limit], many=True).data})


def _link(request: Request, **parameters: str) -> str:
    query = request.query_params.copy()
    for name, value in parameters.items():
        query[name] = value
    return request.build_absolute_uri(f"?{query.urlencode()}")


def ordering_of(request: Request) -> str:
    """Which order is asked for; refused, if it is none that is allowed."""
    ordering: str = request.query_params.get("ordering", ORDERINGS[0])
    if ordering not in ORDERINGS:
        raise ValidationError({"ordering": _("Give one of %(names)s.") % {"names": ", ".join(ORDERINGS)}})
    return ordering


class TaskPagination(BasePagination):
    """Pages of tasks by due time, in the order asked for."""

    parameters = ("cursor", "limit", "ordering")
    page: Page

    def paginate_queryset(  # type: ignore[override]
        self, queryset: QuerySet[Any], request: Request, view: APIView | None = None
    ) -> list[ScheduledTask]:
        asked = set(request.query_params.getlist("state"))  # Which the filters have looked at.
        states = asked & set(State.values) or State.values
        self.page = page_of(queryset, request, ordering_of(request), states)  # type: ignore[arg-type]
        recall(self.page.tasks, using=queryset.db)
        return self.page.tasks

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"next": self.page.next, "results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri", "description": "The next page; null: this is the last."}
        properties = {"next": link, "results": schema}
        return {"type": "object", "required": ["next", "results"], "properties": properties}

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        return [{"name": name, "in": "query", "required": False, "schema": DESCRIBED[name]} for name in self.parameters]


def _after(tasks: ScheduledTaskQuerySet, place: Place | None, latest: bool) -> ScheduledTaskQuerySet:
    if place is None:
        return tasks
    if latest:  # The second bound says nothing new: it is what an index can start from.
        return tasks.filter(Q(scheduled_at__lt=place.at) | Q(pk__lt=place.pk), scheduled_at__lte=place.at)
    return tasks.filter(Q(scheduled_at__gt=place.at) | Q(pk__gt=place.pk), scheduled_at__gte=place.at)


def limit_of(request: Request) -> int:
    """How many rows a request wants on a page, 1 to ``LONGEST``; refused, if it is no such number."""
    text: str = request.query_params.get("limit", str(USUAL))
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LONGEST)) and 1 <= int(text) <= LONGEST):
        raise ValidationError({"limit": _("Give a number from 1 to %(most)s.") % {"most": LONGEST}})
    return int(text)


def _place(request: Request) -> Place | None:
    cursor = request.query_params.get("cursor")
    if cursor is None:
        return None
    try:
        at, key = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split()
        moment, pk = read_instant(at), UUID(hex=key)
    except ValueError:
        moment = None
    if moment is None:
        raise ValidationError({"cursor": _("Take it from a link to a next page.")})
    return Place(nearest(moment), pk)
