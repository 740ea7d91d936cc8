"""Bodies of requests."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field

from timeline.api.fields import AnyField, InstantField, ObjectField, StrictSerializer, TextField
from timeline.models.entities import MAX_ID, MAX_LABEL
from timeline.models.step import MAX_NAME

_NO_BLANK: Final = r"^\s\x1c-\x1f\x85"  # As Python sees blanks: a few more than other languages do.


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": 200, "pattern": f"[{_NO_BLANK}]"})
class ReasonField(TextField):
    """Why somebody decided so."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": 200, **options})


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": 100, "pattern": f"^[{_NO_BLANK}]+$"})
class NameField(TextField):
    """Name of an event."""


class ReasonBody(StrictSerializer):
    """Why: kept with the name of who decided."""

    reason = ReasonField(help_text="1 to 200 characters, after blanks around it are taken away.")


class MoveBody(ReasonBody):
    """A new time, and why."""

    at = InstantField(help_text="New due time with its offset from UTC, from 1970 to 9000; in the past: due now.")


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


class EventBody(StrictSerializer):
    """What happened."""

    name = NameField(help_text="For example `user.created`; no blanks.", min_length=1, max_length=100)
    entity = EntityBody(required=False, allow_null=True, help_text="What it is about; nothing: the system.")
    key = TextField(
        required=False,
        default="",
        allow_blank=True,
        max_length=200,
        help_text="Recorded once for each; empty: each time.",
    )
    payload = ObjectField(required=False, default=dict, help_text="Plain JSON, 64 KiB at most.")
    occurred_at = InstantField(
        required=False, allow_null=True, help_text="When it happened, with its offset from UTC; nothing: now."
    )
