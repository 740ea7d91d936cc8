"""
The column rules: what a change of a task makes of its row, and what the log says of it.

They are made from the lifecycle's table and from nothing else of the package: what is written there once more, in SQL or in
Python, is compared with this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple
from uuid import UUID

from timeline.conf import get_settings
from timeline.lifecycle import FINAL, LEASED, Reason, State, Trigger, target

Row = Mapping[str, Any]
SENT: Final = "sent"  # Now, by machine time.

# What no change touches.
KEPT: Final = frozenset(
    {
        "id",
        "run_id",
        "entity_label",
        "entity_id",
        "task_key",
        "occurrence",
        "revision",
        "priority",
        "queue",
        "payload",
        "max_attempts",
        "cause_id",
        "previous_id",
        "created_at",
        "limit_key",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTimes:
    """A new due time, with all that it was computed from."""

    nominal_at: datetime
    scheduled_at: datetime
    anchor: str
    anchor_value: datetime | None
    anchor_date: date | None
    planned_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """
    A change of a task. What is None stays as it is.

    Args:
        triggers: One, or two that are composed; none: the state stays.
        lease: How long the row is held, where it is held then; None: ``TIMELINE["LEASE"]``.
        result: As JSON text.
        slot: The place that it takes; 0: it gives its place up.
        sent: Of what is not logged only: ``SENT``; or "" for None.
        logged: False: only the lease is another, and perhaps when it was sent. No entry, no ``seq``.
    """

    triggers: tuple[Trigger, ...] = ()
    reason: Reason | None = None
    scheduled_at: datetime | None = None
    times: NewTimes | None = None
    definition_hash: str | None = None
    result: str | None = None
    error: dict[str, str] | None = None
    fingerprint: str = ""
    failures: int = 0
    lost: int = 0
    claim_token: UUID | None = None
    worker: str | None = None
    lease: timedelta | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    slot: int | None = None
    sent: str | None = None
    logged: bool = True

    @property
    def due_at(self) -> datetime | None:
        """New due time."""
        return self.times.scheduled_at if self.times else self.scheduled_at

    def by(self, triggers: tuple[Trigger, ...]) -> Move:
        """The same by other triggers."""
        return replace(self, triggers=triggers)


class FromNow(NamedTuple):
    """So long after the moment of writing, by machine time."""

    length: timedelta


class Case(NamedTuple):
    """
    One change of one row.

    Args:
        row: As it was.
        move: What is to become of it.
        now: Story time.
    """

    row: Row
    move: Move
    now: datetime

    @property
    def states(self) -> list[State]:
        """Each that is passed, the first and the last among them."""
        start, triggers = State(self.row["state"]), self.move.triggers
        return [start, *(target(start, *triggers[:count]) for count in range(1, len(triggers) + 1))]

    @property
    def end(self) -> State:
        """Where it stands then."""
        return self.states[-1]

    @property
    def is_start(self) -> bool:
        """Whether an attempt begins."""
        return bool(self.move.triggers) and self.end == State.ACTIVE

    @property
    def entries(self) -> int:
        """How many the log has of it: one for each move, and one where the state stays."""
        return max(len(self.move.triggers), 1) if self.move.logged else 0


Rule = Callable[[Case], Any]


def _given(name: str) -> Rule:
    """What the move says; else as it was."""

    def rule(case: Case) -> Any:
        value = getattr(case.move, name)
        return case.row[name] if value is None else value

    return rule


def _of_times(name: str) -> Rule:
    """What the new times say, None too; without them as it was."""
    return lambda case: getattr(case.move.times, name) if case.move.times else case.row[name]


def _of_reason(name: str) -> Rule:
    """What the new reason says, empty too; without one as it was."""
    return lambda case: said(case.move.reason)[name] if case.move.reason else case.row[name]


def _plus(name: str) -> Rule:
    return lambda case: case.row[name] + getattr(case.move, name)


def _claim_token(case: Case) -> UUID | None:
    """Who is on their way to the row, or has it: of those that are held, kept while they run."""
    if case.end == State.PENDING and case.move.claim_token is not None:
        return case.move.claim_token
    return case.row["claim_token"] if case.end in LEASED else None


def _lease(case: Case) -> FromNow | None:
    if case.end not in LEASED:
        return None
    return FromNow(get_settings().LEASE if case.move.lease is None else case.move.lease)


def _sent_at(case: Case) -> FromNow | datetime | None:
    """When its message was sent last. What is claimed is sent; what is claimed already and logged is sent again."""
    if case.move.sent == SENT or (case.move.logged and case.end == State.PENDING):
        return FromNow(timedelta(0))
    return None if case.move.sent == "" else case.row["sent_at"]


def _error(case: Case) -> str:
    error = case.move.error
    return f"{error['class']}: {error['message']}" if error else case.row["error"]


def _slot(case: Case) -> int:
    """The place that it has: given up where an attempt or the task ends, unless it is to be held for longer."""
    if case.move.slot is not None:
        return case.move.slot
    row, until = case.row, case.row["held_until"]
    stays_closed = until == "opened+" or (until == "opened" and row["state"] == State.ACTIVE)
    is_over = {
        State.COMPLETED: True,
        State.DISCARDED: not stays_closed,
        State.CANCELLED: not stays_closed,
        State.RETRYABLE: until == "attempt",
    }
    return 0 if is_over.get(case.end) else row["slot"]


def _held_until(case: Case) -> str:
    """Until when it holds its place; and that something of it is half done, once an attempt has kept the place."""
    until: str = case.row["held_until"]
    keeps = Trigger.RETRY in case.move.triggers and case.move.slot is None and case.row["slot"] > 0
    return f"{until}+" if keeps and until in ("end", "opened") else until


RULES: Final[Mapping[str, Rule]] = {
    "state": lambda case: case.end,
    "seq": lambda case: case.row["seq"] + case.entries,
    "attempt": lambda case: case.row["attempt"] + case.is_start,
    "failures": _plus("failures"),
    "lost": _plus("lost"),
    "scheduled_at": lambda case: case.move.due_at or case.row["scheduled_at"],
    "nominal_at": _of_times("nominal_at"),
    "planned_at": _of_times("planned_at"),
    "anchor": _of_times("anchor"),
    "anchor_value": _of_times("anchor_value"),
    "anchor_date": _of_times("anchor_date"),
    "expires_at": _of_times("expires_at"),
    "definition_hash": _given("definition_hash"),
    "claim_token": _claim_token,
    "lease_expires_at": _lease,
    "sent_at": _sent_at,
    "worker": _given("worker"),
    "result": lambda case: case.row["result"] if case.move.result is None else json.loads(case.move.result),
    "error": _error,
    "fingerprint": lambda case: case.move.fingerprint or case.row["fingerprint"],
    "awaits": lambda case: "" if Trigger.RETRY in case.move.triggers else case.row["awaits"],
    "awaits_key": lambda case: case.row["awaits_key"],
    "awaits_label": lambda case: case.row["awaits_label"],
    "awaits_id": lambda case: case.row["awaits_id"],
    "awaits_other": lambda case: case.row["awaits_other"],
    "slot": _slot,
    "held_until": _held_until,
    "reason_code": _of_reason("reason_code"),
    "reason": _of_reason("reason"),
    "actor": _of_reason("actor"),
    "started_at": lambda case: case.now if case.is_start else case.row["started_at"],
    "finished_at": lambda case: case.now if case.end in FINAL else None,
}


def row_after(case: Case) -> dict[str, Any]:
    """What the row is then."""
    return {name: case.row[name] for name in KEPT} | {name: rule(case) for name, rule in RULES.items()}


def entries_of(case: Case) -> list[dict[str, Any]]:
    """What the log says of it, in order: one entry for each move. The last one has what there is to tell."""
    states = case.states if case.move.triggers else [*case.states, *case.states]
    steps = list(pairwise(states))[: case.entries]
    entries = [
        {
            "seq": case.row["seq"] + number,
            "at": case.now,
            "from_state": before,
            "to_state": after,
            "attempt": case.row["attempt"] + (case.is_start and number == len(steps)),
            "detail": {},
            **said(None),
        }
        for number, (before, after) in enumerate(steps, start=1)
    ]
    if entries:
        entries[-1] |= said(case.move.reason) | {"detail": _detail(case)}
    return entries


def _detail(case: Case) -> dict[str, Any]:
    detail, due_at, before = dict(case.move.evidence), case.move.due_at, case.row["scheduled_at"]
    if due_at is not None and due_at != before:
        times = {"scheduled_at": due_at, "scheduled_at_before": before}
        detail |= {name: at.astimezone(UTC).isoformat() for name, at in times.items()}
    return detail | ({"error": case.move.error} if case.move.error else {})


def said(reason: Reason | None) -> dict[str, str]:
    """The columns that a reason has, of rows and of the log."""
    if reason is None:
        return {"reason_code": "", "reason": "", "actor": ""}
    return {"reason_code": reason.code, "reason": _cut(reason.text, 200), "actor": _cut(reason.actor, 150)}


def _cut(text: str, length: int) -> str:
    """Without what no database stores, and no longer than its column."""
    text = text.replace("\x00", "").encode(errors="replace").decode()
    return text if len(text) <= length else text[: length - 1] + "…"
