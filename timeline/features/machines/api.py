"""Where a machine is, and what it is about, as the API gives it; and the run that asks a user for an event."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied, Throttled

from timeline.api.base import TimelineAPI, TimelineThrottle
from timeline.api.fields import EntityField, InstantField, StrictSerializer, TextField
from timeline.api.preconditions import RequestOutcome, answer_once
from timeline.api.schema import REPEATABLE, answers, described
from timeline.definition import IGNORE, STAY, Definition
from timeline.features.machines.choices import targets_of
from timeline.features.machines.takes import Item, find_item, hand_over, may_answer, take
from timeline.models import EntityRef, TimelineRun
from timeline.models.machine_rows import MAX_HOLDER, RunEntry
from timeline.registry import registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from rest_framework.request import Request
    from rest_framework.response import Response

    from timeline.models import Taking
    from timeline.policy import TimelinePolicy

SCOPE: Final = "timeline.asked"
RATE: Final = "30/min"  # Unless the host sets one; None is no limit.
MOST_STAYS: Final = 10  # So often somebody may have a run enter its state again before it comes to another.
_MAX_KEY: Final = 200


class MoveSerializer(serializers.Serializer[Any]):
    """One move of a machine, or its beginning."""

    seq = serializers.IntegerField(read_only=True, help_text="Counts moves; 0: it began.")
    at = InstantField(read_only=True)
    from_state = serializers.CharField(read_only=True, help_text="Empty where it began.")
    to_state = serializers.CharField(read_only=True)
    event = serializers.CharField(read_only=True, help_text="Its name; empty: it was begun by hand.")
    actor = serializers.CharField(read_only=True, help_text="Empty: the system, or you may not know.")
    reason = serializers.CharField(
        read_only=True,
        help_text="What the person wrote whom the machine had asked. Empty: nothing, or you may not know.",
    )


class MachineSerializer(serializers.Serializer[Any]):
    """Where the run of a machine is."""

    timeline = serializers.CharField(source="run.timeline", read_only=True)
    entity = EntityField(source="run.entity_ref", help_text="What it is about; null: the system.")
    run = serializers.UUIDField(source="run.pk", read_only=True)
    key = serializers.CharField(source="run.key", read_only=True, help_text="Tells runs of the same entity apart.")
    state = serializers.CharField(source="run.state", read_only=True, help_text="As the machine calls it.")
    state_at = InstantField(source="run.state_at", read_only=True, help_text="Since when.")
    ended_at = InstantField(source="run.ended_at", read_only=True, allow_null=True)
    takes = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="Events that its state takes; none once it has ended."
    )
    asked = serializers.SerializerMethodField(help_text="Those of them that it asks you for: you may say them.")
    titles = serializers.DictField(
        child=serializers.CharField(),
        read_only=True,
        help_text="States and events that are named here → what people call them; those without a title are left out.",
    )
    buttons = serializers.SerializerMethodField(
        help_text="What the buttons of those that it asks you for say: event → its title, or its name."
    )
    moves = MoveSerializer(many=True, read_only=True, help_text="The latest 50, from the first to the last.")

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_asked(self, line: Any) -> list[str]:
        view = self.context["view"]
        asked: list[str] = view.policy.asked_of(view.request.user, line.run, using=line.run._state.db)
        return asked

    @extend_schema_field(serializers.DictField(child=serializers.CharField()))
    def get_buttons(self, line: Any) -> dict[str, str]:
        return {event: registry.timeline(line.run.timeline).button_of(event) for event in self.get_asked(line)}


class AskedThrottle(TimelineThrottle):
    """Counts the events of a user who may not emit."""

    scope_attr, named, usual = "asked_scope", SCOPE, RATE


def asked_run(given: dict[str, Any], policy: TimelinePolicy, user: Any, *, using: str) -> TimelineRun | None:
    """The open run whose machine asks a user for an event; None, by the same statements, if absent, foreign or ended."""
    ref = EntityRef(**given["entity"])
    runs = TimelineRun.objects.using(using).open().for_entity(ref).filter(timeline=given["machine"])
    run = runs.order_by("pk").first()
    nobody = TimelineRun(timeline=given["machine"], entity_label=ref.label, entity_id=ref.id)
    return run if policy.may_ask(user, run or nobody, given["name"], using=using) else None


def asking_machine(given: dict[str, Any]) -> Definition | None:
    """The machine that is named, if it takes the event, of an entity such as is named; None: there is no such machine."""
    about = given.get("entity") or {}
    if given.get("occurred_at") is not None:  # That it came earlier is not theirs to say.
        return None
    named = (known for known in registry.machines(given["name"]) if known.name == given["machine"])
    return next((known for known in named if known.label and known.label == about.get("label")), None)


def refuse_to_stay_for_ever(run: TimelineRun, definition: Definition, event: str, *, using: str) -> None:
    """Raise ``Throttled`` if events made a run enter its state again, and do its tasks again, ``MOST_STAYS`` times in a row."""
    to = definition.machine.takes(run.state).get(event, IGNORE) if definition.machine is not None else IGNORE
    if not {STAY, run.state}.intersection(targets_of(to)):
        return
    entries = RunEntry.objects.using(using).filter(run=run.pk)
    came = entries.exclude(from_state=F("to_state")).order_by("-seq").values_list("seq", flat=True).first()
    if run.moves - (came or 0) >= MOST_STAYS:
        raise Throttled(detail=_("It was said so often in this state that it may not be said again."))


def key_of(user: Any, key: str) -> str:
    """The key that an event is recorded with: each user has keys of their own, so that nobody takes one of the site's."""
    own = f"asked:{user.pk}:{key}"
    if not key or len(own) <= _MAX_KEY:
        return own if key else ""
    return f"asked:{user.pk}:{sha256(key.encode()).hexdigest()}"


class TakingSerializer(serializers.Serializer[Any]):
    """Who has what waits for people."""

    item = serializers.UUIDField(read_only=True, help_text="Id of the run, or of the task.")
    holder = serializers.CharField(read_only=True, help_text="User name of who has it.")
    actor = serializers.CharField(read_only=True, help_text="Who took it, or handed it over.")
    at = InstantField(read_only=True, help_text="Since when.")


class NothingBody(StrictSerializer):
    """Nothing: who asks takes it."""


class HandOverBody(StrictSerializer):
    """To whom it goes."""

    to = TextField(min_length=1, max_length=MAX_HOLDER, help_text="User name of somebody who may answer.")


class Take(TimelineAPI):
    """What waits for people, for those who may answer it."""

    @described(
        operation_id="take",
        request=NothingBody,
        parameters=REPEATABLE,
        responses=answers(404, 409, 413, 415, 422, ok=TakingSerializer),
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """
        Take a run or a task that waits for people, so that others see that you are at it. Whoever may can still answer. It is
        yours until it is answered, its time is up, or somebody hands it over.
        """
        item = self.item(pk)
        NothingBody.read(request)
        return self.told(partial(take, item, holder=self.actor, now=self.now, using=self.get_using()))

    def item(self, pk: UUID) -> Item:
        """What is named, if they may answer it: 404 for what they do not see, 403 for what is for others."""
        user, using = self.request.user, self.get_using()
        item = find_item(pk, tasks=self.get_queryset())
        row = item.row if item is not None else None
        if item is not None and may_answer(self.policy, user, item, using=using):
            return item
        if isinstance(row, TimelineRun) and not self.policy.sees_timeline(
            user, row.timeline, row.entity_ref, using=using
        ):
            raise NotFound
        raise PermissionDenied if item is not None else NotFound

    def told(self, act: Callable[[], Taking]) -> Response:
        """Do it, once for each key of the request."""

        def acting() -> RequestOutcome:
            return RequestOutcome(TakingSerializer(act()).data)

        return answer_once(self.request, acting, using=self.get_using())


class HandOver(Take):
    @described(
        operation_id="hand_over",
        request=HandOverBody,
        parameters=REPEATABLE,
        responses=answers(404, 409, 413, 415, 422, ok=TakingSerializer),
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Hand a run or a task that waits for people over to somebody who may answer it, whoever has it."""
        item, using = self.item(pk), self.get_using()
        to = HandOverBody.read(request)["to"]
        given = {"to": to, "policy": self.policy, "actor": self.actor, "now": self.now, "using": using}
        return self.told(partial(hand_over, item, **given))


ROUTES: Final = (
    ("waiting/<uuid:pk>/take/", Take, "take"),
    ("waiting/<uuid:pk>/hand-over/", HandOver, "hand-over"),
)
