"""Holds: what is not to run for a while. Seen, made and released by those who may."""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from timeline import shortcuts
from timeline.api.base import TimelineAPI
from timeline.api.fields import ChoiceOf, EntityField, InstantField, find_entity
from timeline.api.filters import no_timeline_about
from timeline.api.pagination import DESCRIBED, answer_page
from timeline.api.preconditions import RequestOutcome, answer_once
from timeline.api.requests import HoldBody, ReleaseBody
from timeline.api.schema import REPEATABLE, answers, described
from timeline.exceptions import WrongEntity
from timeline.models import EntityRef, Hold, Scope, Then
from timeline.models.decisions import HoldQuerySet
from timeline.registry import registry

_ANSWERS: Final = ("true", "false")
_QUERY: Final = [
    OpenApiParameter("released", str, enum=_ANSWERS, default="false", description="Those that are over instead."),
    OpenApiParameter("cursor", {**DESCRIBED["cursor"], "format": "uuid"}),
    OpenApiParameter("limit", DESCRIBED["limit"]),
]


class HoldSerializer(serializers.Serializer[Any]):
    """One hold."""

    id = serializers.UUIDField(read_only=True)
    scope = ChoiceOf(Scope, read_only=True)
    target = serializers.CharField(read_only=True, help_text="Task key, name of the timeline, queue, or tag.")
    entity = EntityField(help_text="What is held; null: of the other scopes.")
    then = ChoiceOf(Then, read_only=True, help_text="What becomes of its tasks when it ends.")
    until = InstantField(read_only=True, allow_null=True, help_text="When it ends by itself.")
    reason = serializers.CharField(read_only=True)
    actor = serializers.CharField(read_only=True, help_text="Who made it; empty: the system.")
    created_at = InstantField(read_only=True)
    lifted_at = InstantField(read_only=True, allow_null=True, help_text="Until when it counts; null: it goes on.")
    released_by = serializers.CharField(read_only=True, help_text="Who released it; empty: nobody yet, or its time.")
    release_reason = serializers.CharField(read_only=True, help_text="Why; empty: nobody said it.")
    park_above = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="A brake has made it: more tasks would have started. Null: it was none.",
    )
    park_within_seconds = serializers.SerializerMethodField(help_text="Within what time. Null: it was no brake.")
    settled = serializers.IntegerField(
        read_only=True, help_text="How many were moved on, cancelled or, of a brake, let go."
    )
    released_at = InstantField(
        read_only=True, allow_null=True, help_text="When nothing was left to do about it; null: it still holds."
    )

    @extend_schema_field({"type": ["integer", "null"]})
    def get_park_within_seconds(self, hold: Hold) -> int | None:
        return None if hold.park_within is None else int(hold.park_within.total_seconds())


class HoldPageSerializer(serializers.Serializer[Any]):
    """A page of holds."""

    next = serializers.URLField(read_only=True, allow_null=True, help_text="The next page; null: this is the last.")
    results = HoldSerializer(many=True, read_only=True)


class HoldsView(TimelineAPI):
    """Base: the holds that the user may see."""

    serializer_class: type[HoldSerializer] = HoldSerializer

    def get_holds(self) -> HoldQuerySet:
        return self.policy.visible_holds(Hold.objects.using(self.get_using()), self.request.user)

    def told(self, hold: Hold) -> Any:
        return self.serializer_class(hold).data


class Holds(HoldsView):
    parameters = ("released", "cursor", "limit")

    @described(operation_id="holds", parameters=_QUERY, responses=answers(ok=HoldPageSerializer))
    def get(self, request: Request) -> Response:
        """List what is on hold, in the order it was put there."""
        asked = request.query_params
        if asked.get("released", "false") not in _ANSWERS:
            raise ValidationError({"released": _("Give one of %(names)s.") % {"names": ", ".join(_ANSWERS)}})
        holds = self.get_holds().filter(released_at__isnull=asked.get("released") != "true").order_by("pk")
        if "cursor" in asked:
            holds = holds.filter(pk__gt=_place(asked["cursor"]))
        return answer_page(request, holds, self.serializer_class)

    @described(
        operation_id="hold",
        request=HoldBody,
        parameters=REPEATABLE,
        responses=answers(413, 415, 422, created=HoldSerializer),
    )
    def post(self, request: Request) -> Response:
        """Put something on hold. None of its tasks is started until it is released, or its time has come."""
        if not self.policy.may_hold(request.user):
            raise PermissionDenied
        return answer_once(request, partial(self._hold, HoldBody.read(request)), using=self.get_using())

    def _hold(self, given: dict[str, Any]) -> RequestOutcome:
        entity = given.get("entity")
        scope, using = Scope(given["scope"]), self.get_using()
        what: dict[str, Any] = {scope.value: given["target"]}
        if scope == Scope.EVERYTHING:
            what = {"everything": True}
        elif entity:
            what = {"entity": self._entity(EntityRef(**entity), using)}
        hold = shortcuts.hold(
            **what,
            until=given.get("until"),
            then=given["then"],
            reason=given["reason"],
            actor=self.actor,
            using=using,
        )
        return RequestOutcome(self.told(hold), status.HTTP_201_CREATED)

    def _entity(self, ref: EntityRef, using: str) -> EntityRef:
        """See that a timeline is about it: who holds learns of no other rows."""
        if not registry.knows(ref.label):
            raise no_timeline_about(ref.label)
        if "\x00" in ref.id or find_entity(ref, using=using) is None:
            problem = gettext_lazy("there is no %(label)s %(id)r.")
            raise WrongEntity(problem, gettext_lazy("Give one that is there."), label=ref.label, id=ref.id)
        return ref


class Release(HoldsView):
    @described(
        operation_id="hold_release",
        request=ReleaseBody,
        parameters=REPEATABLE,
        responses=answers(404, 409, 413, 415, 422, ok=HoldSerializer),
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """
        End a hold. With `run` what is due runs at once; otherwise polls first move its tasks on, or cancel those that are due.
        What a brake has stopped is released with a reason: what is due by then runs, what becomes due later is counted anew.
        """
        self.get_holds().get(pk=pk)
        if not self.policy.may_hold(request.user):
            raise PermissionDenied
        given = ReleaseBody.read(request)

        def act() -> RequestOutcome:
            return RequestOutcome(self.told(shortcuts.release(pk, actor=self.actor, using=self.get_using(), **given)))

        return answer_once(request, act, using=self.get_using())


def _place(cursor: str) -> UUID:
    try:
        return UUID(cursor)
    except ValueError:
        raise ValidationError({"cursor": _("Take it from a link to a next page.")}) from None


ROUTES: Final = (("holds/", Holds, "holds"), ("holds/<uuid:pk>/release/", Release, "hold-release"))
