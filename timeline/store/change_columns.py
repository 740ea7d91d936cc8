"""Changes of tasks in the form that the statement reads: values as the database stores them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, timedelta
from typing import Any, Final

from django.db import connections

from timeline.conf import get_settings
from timeline.lifecycle import LEASED, Reason
from timeline.models import ScheduledTask
from timeline.payloads import clip
from timeline.store.changes import Write

MAX_REASON = 200
MAX_ACTOR = 150

ChangeColumns = dict[str, object]
Stored = Callable[[str, object], object]

_JSON: Final = json.JSONEncoder(ensure_ascii=False)  # ``dumps`` would make a new encoder each time.
_COLUMNS = {column.name: column for column in ScheduledTask._meta.concrete_fields}


def as_changes(writes: Iterable[Write], *, using: str) -> list[ChangeColumns]:
    """
    Turn changes into the form that the statement reads. Values are as the database stores them; those that stay are left out.

    Raises:
        TransitionNotAllowed: if the lifecycle does not have this move.
    """
    stored, lease = stored_by(using), get_settings().LEASE
    return [_as_change(write, stored, lease) for write in writes]


def _as_change(write: Write, stored: Stored, lease: timedelta) -> ChangeColumns:
    states = write.states
    change: ChangeColumns = {
        "id": write.task.id.hex,
        "from_state": states[0].value,
        "to_state": states[-1].value,
        "from_attempt": write.task.attempt,
    }
    if write.task.slot or write.slot:
        change["slot"] = write.slot  # All other changes of a place are rules of the statement.
    if len(states) > 2:
        change["via"] = states[1].value
    if states[-1] in LEASED:
        change["lease"] = seconds(lease if write.lease is None else write.lease)
    for name in ("failures", "lost", "worker", "result"):
        value = getattr(write, name)
        if value not in (None, 0):  # An empty name is written: the row belongs to a worker without a name.
            change[name] = value
    if write.reason is not None:
        change |= columns_of(write.reason)
    change |= {name: stored(name, value) for name, value in _seldom(write) if value is not None}
    if detail := _detail(write):
        change["detail"] = _JSON.encode(detail)
    return change


def columns_of(reason: Reason) -> ChangeColumns:
    """The columns of a reason."""
    return {
        "reason_code": reason.code.value,
        "reason": clip(reason.text, MAX_REASON),
        "actor": clip(reason.actor, MAX_ACTOR),
    }


def _seldom(write: Write) -> Iterator[tuple[str, object]]:
    """Values of columns that few changes set."""
    if times := write.times:
        yield "nominal_at", times.nominal_at
        yield "planned_at", times.planned_at
        yield "anchor", times.anchor
        yield "anchor_value", times.anchor_value
        yield "anchor_date", times.anchor_date
        yield "expires_at", times.expires_at
    yield "scheduled_at", write.due_at
    yield "definition_hash", write.definition_hash
    yield "claim_token", write.claim_token
    if error := write.error:
        yield "error", f"{error['class']}: {error['message']}"
    if write.rests:
        yield from write.rests.columns.items()
    if write.fingerprint:
        yield "fingerprint", write.fingerprint


def _detail(write: Write) -> dict[str, Any]:
    detail: dict[str, Any] = dict(write.evidence)
    if write.due_at is not None and write.due_at != write.task.scheduled_at:
        detail["scheduled_at"] = write.due_at.astimezone(UTC).isoformat()
        detail["scheduled_at_before"] = write.task.scheduled_at.astimezone(UTC).isoformat()
    if write.error is not None:
        detail["error"] = write.error
    if write.reason is not None and write.reason.said:
        detail["said"] = dict(write.reason.said)
    return detail


def stored_by(using: str) -> Stored:
    """A function that gives the value of a column as this database stores it, in plain JSON."""
    connection = connections[using]

    def stored(column: str, value: object) -> object:
        prepared = _COLUMNS[column].get_db_prep_save(value, connection)
        return prepared if isinstance(prepared, str | int) else str(prepared)

    return stored


def seconds(length: timedelta) -> str:
    return f"{length.total_seconds():+.3f} seconds"
