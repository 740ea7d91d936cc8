"""One change of one task, and as what the statement that makes it reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connections

from timeline.conf import get_settings
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import LEASED, Reason, State, Trigger, target
from timeline.models import ScheduledTask
from timeline.payloads import clip

if TYPE_CHECKING:
    from timeline.definition import Then
    from timeline.definition.fanning import Payloads
    from timeline.planning import Times
    from timeline.store.queueing import Behind
    from timeline.store.waiting import Rests

MAX_REASON = 200
MAX_ACTOR = 150

ChangeColumns = dict[str, object]
Stored = Callable[[str, object], object]

_COLUMNS = {column.name: column for column in ScheduledTask._meta.concrete_fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """
    One change of one task. What is None stays as it is.

    Args:
        task: As it was read; its state and attempt guard the write.
        triggers: One move, or two composed; none: only times change.
        reason: Kept on the row and in the log.
        scheduled_at: New due time (aware).
        times: New due time with all it was computed from.
        definition_hash: Goes with ``times``.
        result: What the handler returned, as JSON text.
        error: Of the failed attempt: ``class``, ``message``, ``traceback``.
        fingerprint: Of that attempt: what it has in common with others that failed alike.
        raised: What it was made of, for the log of the process; not stored.
        failures, lost: Added to the counts.
        claim_token, worker: Who takes the row.
        lease: How long the row is theirs, where the new state is pending or active; None: ``TIMELINE["LEASE"]``.
        evidence: Kept in the log.
        fans_out: What follows from its completion: name of a task → its occurrences. Written by ``fanning``.
        rests: What it waits for from now on.
        then: The event that moves its machine with it. Written by ``moving_on``.
        answers: Events that an error may mean; the first that its machine takes moves that instead. See ``answering``.
        slot: The place that it takes; 0: it gives its place up.
        entered: Whether its handler was, or may have been, in the attempt that ends so.
    """

    task: ScheduledTask
    triggers: tuple[Trigger, ...] = ()
    reason: Reason | None = None
    scheduled_at: datetime | None = None
    times: Times | None = None
    definition_hash: str | None = None
    result: str | None = None
    error: dict[str, str] | None = None
    fingerprint: str = ""
    raised: Exception | None = None
    failures: int = 0
    lost: int = 0
    claim_token: UUID | None = None
    worker: str | None = None
    lease: timedelta | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    fans_out: Mapping[str, Payloads] = field(default_factory=dict)
    rests: Rests | Behind | None = None
    then: Then | None = None
    answers: tuple[str, ...] = ()
    slot: int | None = None
    entered: bool = True

    @property
    def due_at(self) -> datetime | None:
        """New due time; None: as it is."""
        return self.times.scheduled_at if self.times else self.scheduled_at

    @property
    def states(self) -> tuple[State, ...]:
        """
        Each state passed, from where it stands to where it ends.

        Raises:
            TransitionNotAllowed: if the lifecycle has no such move.
        """
        try:
            return passed(self.task.state, self.triggers)
        except TransitionNotAllowed:
            target(State(self.task.state), *self.triggers, task=self.task.id)  # Refuses it too, and names the task.
            raise


@cache
def passed(state: str, triggers: tuple[Trigger, ...]) -> tuple[State, ...]:
    """The same, of any task that stands there."""
    start = State(state)
    target(start, *triggers)
    return (start, *(target(start, *triggers[:count]) for count in range(1, len(triggers) + 1)))


def as_changes(writes: Iterable[Write], *, using: str) -> list[ChangeColumns]:
    """
    Write the changes as the statement reads them: values as the database stores them, what stays left out.

    Raises:
        TransitionNotAllowed: if the lifecycle has no such move.
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
        change["slot"] = write.slot  # What else happens to a place, the statement knows.
    if len(states) > 2:
        change["via"] = states[1].value
    if states[-1] in LEASED:
        change["lease"] = seconds(lease if write.lease is None else write.lease)
    for name in ("failures", "lost", "worker", "result"):
        value = getattr(write, name)
        if value not in (None, 0):  # An empty name is written: a worker without one has the row.
            change[name] = value
    if write.reason is not None:
        change |= columns_of(write.reason)
    change |= {name: stored(name, value) for name, value in _seldom(write) if value is not None}
    if detail := _detail(write):
        change["detail"] = json.dumps(detail, ensure_ascii=False)
    return change


def columns_of(reason: Reason) -> ChangeColumns:
    """A reason as its columns hold it."""
    return {
        "reason_code": reason.code.value,
        "reason": clip(reason.text, MAX_REASON),
        "actor": clip(reason.actor, MAX_ACTOR),
    }


def _seldom(write: Write) -> Iterator[tuple[str, object]]:
    """Values of columns that few changes touch."""
    if times := write.times:
        yield "nominal_at", times.nominal_at
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
    """How this database stores a column's value, as plain JSON."""
    connection = connections[using]

    def stored(column: str, value: object) -> object:
        prepared = _COLUMNS[column].get_db_prep_save(value, connection)
        return prepared if isinstance(prepared, str | int) else str(prepared)

    return stored


def seconds(length: timedelta) -> str:
    return f"{length.total_seconds():+.3f} seconds"
