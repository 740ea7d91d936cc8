"""One change of one task: what it changes, the states passed, and the statement that makes it, of the parts that it needs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from uuid import UUID

from django.db import connections

from timeline.conf import get_settings
from timeline.dialects import Dialect, narrowed
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import FINAL, LEASED, Reason, State, Trigger, target
from timeline.models import ScheduledTask
from timeline.payloads import clip

if TYPE_CHECKING:
    from timeline.definition import Then
    from timeline.features.fan_out.declaration import Payloads
    from timeline.planning import Times

    class Resting(Protocol):
        """What a task rests for."""

        @property
        def columns(self) -> Mapping[str, str | bool]:
            """The columns of the row of the task that say so."""


MAX_REASON = 200
MAX_ACTOR = 150
ChangeColumns = dict[str, object]
Stored = Callable[[str, object], object]
_JSON: Final = json.JSONEncoder(ensure_ascii=False)  # ``dumps`` would make a new encoder each time.


@dataclass(slots=True, kw_only=True)  # Not frozen: with so many arguments, an instance would take four times as long.
class Write:
    """
    One change of one task; what is None stays. It is made only if the row still has the state and attempt of ``task``. Nobody
    changes an instance.

    Args:
        triggers: One move, or two in turn; empty: only times change.
        times: New due time, with the values that it was computed from.
        result: What the handler returned, as JSON text.
        error: Of the failed attempt: ``class``, ``message``, ``traceback``.
        fingerprint: Equal for attempts that failed in the same way.
        raised: What ``error`` was made from, for the log of the process; not stored.
        failures, lost: Added to the counts of the row.
        lease: How long the worker has the row; None: ``TIMELINE["LEASE"]``.
        evidence: Further facts for the log.
        fans_out: Rows to make on completion: name of a task → its occurrences.
        rests: What it waits for from now on.
        then: The event that moves the machine of the task in the same transaction.
        answers: Events that an error may mean; the first that the machine takes moves it.
        slot: Number of the place of its limit that the task takes; 0: it gives its place up.
        entered: Whether the handler was entered, or may have been, in the attempt that this ends.
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
    raised: BaseException | None = None
    failures: int = 0
    lost: int = 0
    claim_token: UUID | None = None
    worker: str | None = None
    lease: timedelta | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    fans_out: Mapping[str, Payloads] = field(default_factory=dict)
    rests: Resting | None = None
    then: Then | None = None
    answers: tuple[str, ...] = ()
    slot: int | None = None
    entered: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether it only changes its task: it has no wait, no move of a machine, and no rows to fan out."""
        return self.rests is None and self.then is None and not self.answers and not self.fans_out

    @property
    def due_at(self) -> datetime | None:
        """The new due time; None: the due time stays."""
        return self.times.scheduled_at if self.times else self.scheduled_at

    @property
    def states(self) -> tuple[State, ...]:
        """All states from the present one to the new one. ``TransitionNotAllowed``: the lifecycle does not have this move."""
        try:
            return passed(self.task.state, self.triggers)
        except TransitionNotAllowed:
            target(State(self.task.state), *self.triggers, task=self.task.id)  # Raises the same, and names the task.
            raise


@cache
def passed(state: str, triggers: tuple[Trigger, ...]) -> tuple[State, ...]:
    """All states that a task in ``state`` passes through by these triggers, both ends included."""
    start = State(state)
    target(start, *triggers)
    return (start, *(target(start, *triggers[:count]) for count in range(1, len(triggers) + 1)))


_COLUMNS = {column.name: column for column in ScheduledTask._meta.concrete_fields}


def as_changes(writes: Iterable[Write], *, using: str) -> list[ChangeColumns]:
    """Changes as the statement reads them: values as stored, without those that stay; or ``TransitionNotAllowed``."""
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


# The values that a change may have, and their types in PostgreSQL.
VALUES: Final = {
    "id": "uuid",
    "from_state": "text",
    "via": "text",
    "to_state": "text",
    "from_attempt": "integer",
    "failures": "integer",
    "lost": "integer",
    "scheduled_at": "timestamptz",
    "nominal_at": "timestamptz",
    "planned_at": "timestamptz",
    "anchor": "text",
    "anchor_value": "timestamptz",
    "anchor_date": "date",
    "expires_at": "timestamptz",
    "definition_hash": "text",
    "claim_token": "uuid",
    "lease": "interval",
    "worker": "text",
    "result": "text",
    "error": "text",
    "fingerprint": "text",
    "awaits": "text",
    "awaits_key": "text",
    "awaits_label": "text",
    "awaits_id": "text",
    "awaits_other": "boolean",
    "slot": "integer",
    "detail": "text",
    "reason_code": "text",
    "reason": "text",
    "actor": "text",
}
NOTHING: Final[ChangeColumns] = dict.fromkeys(VALUES)  # The values that a change may leave out.

# The columns that a statement always returns.
ALWAYS: Final = (
    "id",
    "state",
    "seq",
    "attempt",
    "scheduled_at",
    "claim_token",
    "lease_expires_at",
    "reason_code",
    "reason",
    "actor",
    "finished_at",
)
_OF_FOUND: Final = ("id", "state", "seq", "attempt", "priority", "scheduled_at")  # For the order and the log.

# Where a statement reads a value. "one": from one change. "found": from one change, which is the same for all rows found.
# "many": from JSON with many changes; on SQLite this is "each".
_READ: Final = {
    "one": "%({name})s::{type}",
    "found": "%({name})s::{type}",
    "many": "change.{name}",
    "each": "json_extract(change.value, '$.{name}')",
}
LIMITED: Final = "limited"  # The selection that gives a place to each row that it finds.

_COLUMN: Final = re.compile(r"^    (\w+) = ", re.MULTILINE)
PARAMETER: Final = re.compile(r"%\((\w+)\)s")  # Where a statement reads a parameter. Functions have arguments there.
_VALUE: Final = re.compile(r"\bchange\.(\w+)")


class Composed(NamedTuple):
    """A statement and the columns that it returns. ``log``: a second statement, for the log entries on SQLite."""

    sql: str
    columns: tuple[str, ...]
    log: str = ""


def touched(changes: Iterable[ChangeColumns]) -> frozenset[str]:
    """What any of the changes touches: names of values, states in which they end, and ``ends`` if one of these is final."""
    states = {State(str(change["to_state"])) for change in changes}
    return frozenset().union(*changes, states, ["ends"] if states & FINAL else [])


@cache
def paths_by(trigger: Trigger) -> tuple[tuple[State, ...], ...]:
    """The states that a row passes in this move, for each state that has it: directly, or after becoming due."""
    paths = []
    for state, triggers in product(State, ((trigger,), (Trigger.DUE, trigger))):
        with suppress(TransitionNotAllowed):
            paths.append(passed(state, triggers))
    return tuple(paths)


@cache
def composed(
    dialect: Dialect,
    source: str,
    touches: frozenset[str],
    columns: tuple[str, ...] = (),
    *,
    selection: str = "",
    paths: tuple[tuple[State, ...], ...] = (),
    wait: bool = True,
) -> Composed:
    """
    Put the rules into the statement that makes changes.

    Args:
        source: Where the changes come from: ``one``, ``many`` or ``found``; on SQLite ``each``.
        touches: What they touch; see ``touched``.
        columns: The columns to return; empty: those that a transition always returns, and all that it sets.
        selection: The statement that finds and locks the rows first, and may always skip locked ones; empty: this one locks.
        paths: For rows that are found: the states passed, for each state that has the move.
    """
    read = {name: _READ[source].format(name=name, type=kind) for name, kind in VALUES.items()}
    touches |= {source, "held", selection} if selection else {source}
    if vias := " ".join(f"WHEN '{states[0]}' THEN '{states[1]}'" for states in paths if len(states) > 2):
        touches |= {"via"}
    if paths:
        if selection == LIMITED:
            touches |= {"slot"}
            read |= {"slot": "change.slot"}
        read |= {"id": "change.id", "from_state": "change.from_state", "via": f"CASE change.from_state {vias} END"}
    rules = narrowed(dialect.sql("columns"), touches)
    columns = columns or tuple(dict.fromkeys((*ALWAYS, *_COLUMN.findall(rules))))
    returned = [f"task.{name}" for name in dict.fromkeys((*columns, *(_OF_FOUND if paths else ())))]
    parts = {
        "rules": rules,
        "entries": narrowed(dialect.sql("entries"), touches),
        "held": narrowed(dialect.sql(f"held_{selection}"), touches).rstrip() if selection else "",
        "skip": "" if wait else "SKIP LOCKED",
        "columns": ", ".join(columns),
        "returned": ", ".join(returned),
        "sources": ", ".join(f"'{states[0]}'" for states in paths),
    }
    verbs = ("transition",) if dialect.has_set_statements else ("transition", "log")
    sql, *log = (_filled(narrowed(dialect.sql(verb), touches), parts, read) for verb in verbs)
    return Composed(sql, columns, *log)


def _filled(text: str, parts: Mapping[str, str], read: Mapping[str, str]) -> str:
    """Put the parts into the text of a statement, and replace each value by the place where it is read."""
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    asked = ", ".join(f"{name} {VALUES[name]}" for name in dict.fromkeys(_VALUE.findall(text)))
    return _VALUE.sub(lambda value: read[value[1]], text.replace("{values}", asked))
