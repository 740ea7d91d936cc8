"""Bodies of requests."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from django.core.validators import RegexValidator
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from timeline.api.fields import (
    AnyField,
    BoundField,
    ChoiceOf,
    InstantField,
    ObjectField,
    StrictSerializer,
    TextField,
    WholeField,
)
from timeline.lifecycle import State
from timeline.models import Scope, Then
from timeline.models.decisions import MAX_TARGET
from timeline.models.entities import MAX_ID, MAX_LABEL
from timeline.models.task_records import MAX_NAME
from timeline.policy import Action
from timeline.timing import LONGEST_SPREAD, check_time

MAX_BY_DAYS: Final = 36_525
MAX_BY_SECONDS: Final = 10**9

_ITS_WAY: Final = "Instead of `at`: how far it moves on from its own time"
_THEIR_WAY: Final = "For `move`, instead of `at`: how far each moves on from its own time"

MOST_ANCHORS: Final = 50
_NO_BLANK: Final = r"^\s\x1c-\x1f\x85"  # As Python sees blanks: a few more than other languages do.


class BulkVerb(StrEnum):
    """What can be done with all tasks that are meant."""

    CANCEL = Action.CANCEL
    MOVE = Action.MOVE
    RUN_NOW = Action.RUN_NOW
    REDRIVE = Action.REDRIVE


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": 200, "pattern": f"[{_NO_BLANK}]"})
class ReasonField(TextField):
    """Why somebody decided so."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": 200, **options})


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": 100, "pattern": f"^[{_NO_BLANK}]+$"})
class NameField(TextField):
    """Name of an event."""


@extend_schema_field(
    {
        "type": "object",
        "minProperties": 1,
        "maxProperties": MOST_ANCHORS,
        "additionalProperties": {"type": ["string", "null"], "minLength": 1, "maxLength": 50},
    }
)
class AnchorsField(serializers.DictField):
    """Fields, and what each would hold."""

    child = TextField(min_length=1, max_length=50, allow_null=True)

    def to_internal_value(self, data: Any) -> Any:
        found = super().to_internal_value(data)
        if not 1 <= len(found) <= MOST_ANCHORS:
            raise ValidationError(_("Give 1 to %(most)d.") % {"most": MOST_ANCHORS})
        return found


def _optional_text(most: int, help_text: str) -> TextField:
    return TextField(required=False, default="", allow_blank=True, max_length=most, help_text=help_text)


def _optional_moment(help_text: str) -> InstantField:
    return InstantField(required=False, allow_null=True, help_text=help_text)


class ReasonBody(StrictSerializer):
    """Why: kept with the name of who decided."""

    reason = ReasonField(help_text="1 to 200 characters, after blanks around it are taken away.")


class DecisionBody(StrictSerializer):
    """A yes or a no, and perhaps why: kept in the event, with the name of who decided."""

    reason = ReasonField(required=False, help_text="1 to 200 characters, after blanks around it are taken away.")


def _spread(help_text: str) -> WholeField:
    longest = int(LONGEST_SPREAD.total_seconds())
    return WholeField(required=False, allow_null=True, min_value=1, max_value=longest, help_text=help_text)


def _by(most: int, said: str, help_text: str) -> WholeField:
    return WholeField(
        required=False,
        allow_null=True,
        min_value=-most,
        max_value=most,
        help_text=f"{said}; below 0: back. In {help_text}",
    )


def _time_or_way(attrs: dict[str, Any]) -> None:
    at, shifts = attrs.get("at"), bool(attrs.get("by_days") or attrs.get("by_seconds"))
    if shifts and at is not None:
        raise ValidationError({"at": _("Leave it out where you say by how much.")})
    if at is not None:
        attrs["at"] = check_time("at", at)
    elif not shifts:
        raise ValidationError({"at": _("Give it.")})


class MoveBody(ReasonBody):
    """A new time, or by how much it is another, and why."""

    at = _optional_moment("New due time with its offset from UTC, from 1970 to 9000; in the past: due now.")
    by_days = _by(MAX_BY_DAYS, _ITS_WAY, "days; it keeps its time of day on the site's clocks.")
    by_seconds = _by(MAX_BY_SECONDS, _ITS_WAY, "seconds, beside `by_days` or alone.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        _time_or_way(attrs)
        return attrs


class RedriveBody(ReasonBody):
    """Why a group runs again, within what time, and where to go on."""

    spread_seconds = _spread("Within which the tasks become due, each at a moment of its own. Nothing: at once.")
    after = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="`next` of the answer before: go on behind it. Nothing: from the first.",
    )


def _named(most: int, help_text: str) -> TextField:
    """A name, of which something is left when blanks around it are taken away."""
    return TextField(
        required=False, max_length=most, validators=[RegexValidator(f"[{_NO_BLANK}]")], help_text=help_text
    )


class FilterBody(StrictSerializer):
    """Which tasks are meant: names as the list has them, and at least one."""

    least = 1
    state = serializers.ListField(
        child=ChoiceOf(State),
        required=False,
        min_length=1,
        max_length=len(State),
        help_text="Where they stand: one of these.",
    )
    task = _named(101, "Key of the task, `trial.remind`.")
    timeline = _named(50, "Name of the timeline, `trial`.")
    group = _named(101, "Those dead letters that failed alike by now, as `dead-letters/` names them.")
    due_after = BoundField(required=False, help_text="Due at this moment or later.")
    due_before = BoundField(required=False, help_text="Due before this moment.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Whoever means all tasks there are says so, by their states."""
        if not attrs:
            raise ValidationError(_("Give at least one of %(names)s.") % {"names": ", ".join(self.fields)})
        return attrs


class BulkBody(ReasonBody):
    """What to do with all tasks that are meant, and why."""

    action = ChoiceOf(BulkVerb, help_text="What to do with each of them.")
    filter = FilterBody(help_text="Which tasks are meant, of those that are there now and that you may see.")
    at = _optional_moment("For `move`: new due time with its offset from UTC, from 1970 to 9000; in the past: due now.")
    by_days = _by(MAX_BY_DAYS, _THEIR_WAY, "days; each keeps its time of day on the site's clocks.")
    by_seconds = _by(MAX_BY_SECONDS, _THEIR_WAY, "seconds, beside `by_days` or alone.")
    spread_seconds = _spread(
        "For `redrive`: within which they become due, each at a moment of its own. Nothing: at once."
    )
    dry_run = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Only count, and show a few: nothing is changed, and no key is used up.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """See that a move has its time or its way, and that nothing is said that the action does not take."""
        action = attrs["action"]
        if action == BulkVerb.MOVE:
            _time_or_way(attrs)
        for name in ("at", "by_days", "by_seconds") if action != BulkVerb.MOVE else ():
            if attrs.get(name) is not None:
                raise ValidationError({name: _("Leave it out for this action.")})
        if action != BulkVerb.REDRIVE and attrs.get("spread_seconds") is not None:
            raise ValidationError({"spread_seconds": _("Leave it out for this action.")})
        return attrs


class StepBody(ReasonBody):
    """A step of the task, and why."""

    step = TextField(max_length=MAX_NAME, trim_whitespace=False, help_text="Its name as the task's `steps` has it.")


class HappenedBody(StepBody):
    """A step that happened, what it gave, and why."""

    result = AnyField(
        required=False,
        allow_null=True,
        default=None,
        help_text="What it would have returned: plain JSON, 64 KiB at most.",
    )


class EntityBody(StrictSerializer):
    """An entity."""

    label = TextField(min_length=1, max_length=MAX_LABEL, help_text="Label of its model, `accounts.user`.")  # type: ignore[assignment]
    id = TextField(min_length=1, max_length=MAX_ID, help_text="Its primary key as text.")


class HoldBody(ReasonBody):
    """What to hold, until when, what then, and why."""

    scope = ChoiceOf(Scope, help_text="What kind of thing is to be held.")
    target = _optional_text(
        MAX_TARGET, "Task key, name of the timeline, queue, or tag; empty for an entity and for everything."
    )
    entity = EntityBody(required=False, allow_null=True, help_text="For the scope `entity`.")
    until = _optional_moment("When it ends by itself, with its offset from UTC; nothing: when it is released.")
    then = ChoiceOf(
        Then,
        required=False,
        default=Then.RUN.value,
        help_text="When it ends: `run` what is due, `shift` all by how long it was held, or `expire` what is due.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """See that what its scope asks for is there, and nothing else."""
        wanted = {Scope.ENTITY: "entity", Scope.EVERYTHING: ""}.get(Scope(attrs["scope"]), "target")
        for name in ("target", "entity"):
            if bool(attrs.get(name)) is not (name == wanted):
                said = _("Give it.") if name == wanted else _("Leave it out for this scope.")
                raise ValidationError({name: said})
        return attrs


class ReleaseBody(StrictSerializer):
    """Why a hold is over: needed for what a brake has stopped."""

    reason = ReasonField(required=False, help_text="1 to 200 characters, after blanks around it are taken away.")


class TriedRunBody(StrictSerializer):
    """A run that is started."""

    timeline = NameField(help_text="Name of its timeline.", min_length=1, max_length=50)
    key = _optional_text(100, "What tells it from others that are open.")
    params = ObjectField(required=False, default=dict, help_text="Plain JSON, 64 KiB at most.")
    started_at = _optional_moment("What its times count from, with its offset from UTC; nothing: now.")


class TriedEventBody(StrictSerializer):
    """An event that comes."""

    name = NameField(help_text="For example `user.created`; no blanks.", min_length=1, max_length=100)
    payload = ObjectField(required=False, default=dict, help_text="Plain JSON, 64 KiB at most.")


class PreviewBody(StrictSerializer):
    """What is tried, in this order: one of these at least."""

    least = 1
    anchors = AnchorsField(
        required=False,
        help_text="Fields of the entity that tasks are anchored to, each with what it would hold: a date, a moment with its "
        "offset from UTC, or null.",
    )
    start = TriedRunBody(required=False, help_text="A run of a timeline begins.")
    event = TriedEventBody(required=False, help_text="An event comes.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Whoever tries something says what."""
        if not attrs:
            raise ValidationError(_("Give at least one of %(names)s.") % {"names": ", ".join(self.fields)})
        return attrs


class EventBody(StrictSerializer):
    """What happened."""

    name = NameField(help_text="For example `user.created`; no blanks.", min_length=1, max_length=100)
    entity = EntityBody(required=False, allow_null=True, help_text="What it is about; nothing: the system.")
    key = _optional_text(200, "Recorded once for each; empty: each time.")
    payload = ObjectField(required=False, default=dict, help_text="Plain JSON, 64 KiB at most.")
    occurred_at = _optional_moment("When it happened, with its offset from UTC; nothing: now.")
    machine = _optional_text(50, "The machine that has to take it; empty: whichever do.")
    expect = _optional_text(
        50, "The state in which that machine has to be, or it is refused; empty: any that takes the event."
    )
