"""``plan``: decides task by task, predecessors first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from typing import Any, Final
from uuid import UUID

from timeline import reasons
from timeline.definition import Definition, Task
from timeline.lifecycle import OPEN, WAITING, Reason, ReasonCode, State
from timeline.planning.answers import Cancel, Create, Foreseen, Keep, Move, Plan, TaskRow, Times
from timeline.timing import When, begins_at, day_of

_NEVER: Final = Reason(ReasonCode.PREDECESSOR)


@dataclass(frozen=True, slots=True)
class _Outlook:
    """How a task stands once the plan is carried out: ended, to come (at a time, if known), or never."""

    ended_at: datetime | None = None
    to_come: bool = False
    expected_at: datetime | None = None
    why_never: Reason = _NEVER


# A task that ended so has said nothing about the future: wanted again, it is made again.
_LEFT_OPEN: Final = frozenset({ReasonCode.SUPERSEDED, ReasonCode.DEFINITION, ReasonCode.PREDECESSOR})


def plan(
    definition: Definition,
    *,
    started_at: datetime,
    anchors: Mapping[str, datetime | None],
    rows: Iterable[TaskRow],
    zone: tzinfo,
    now: datetime,
    spare: Collection[UUID] = (),
    dates: Mapping[str, date] | None = None,
) -> Plan:
    """
    Compare what is wanted with what there is.

    Args:
        definition: The timeline.
        started_at: Start of the run.
        anchors: Field of the entity → its instant; None or missing: not set.
        rows: All rows of the run, in any order.
        zone: On whose wall clock calendar units count.
        now: Story time.
        spare: Rows to leave as they are: the task that is being run right now.
        dates: Field of the entity → the day it holds, where that is a date.

    Raises:
        DateOutOfRange: if a time falls outside 1970–9000.
    """
    return _Planner(definition, started_at, anchors, dates or {}, _latest(rows), zone, now, spare).plan()


def _latest(rows: Iterable[TaskRow]) -> dict[str, TaskRow]:
    latest: dict[str, TaskRow] = {}
    for row in rows:
        if row.task_name not in latest or latest[row.task_name].revision < row.revision:
            latest[row.task_name] = row
    return latest


def _same_anchor(row: TaskRow, times: Times) -> bool:
    """
    Whether its anchor is what it was. A date is the same in every time zone, while its midnight is not.

    Rows of an earlier version know the midnight only, and so do those that it moved: the day is told from that if it can be.
    """
    if times.anchor_date is None or row.anchor_value is None:
        return row.anchor_value == times.anchor_value
    if row.anchor_date is not None and begins_at(row.anchor_date, row.anchor_value):
        return row.anchor_date == times.anchor_date
    return row.anchor_value == times.anchor_value or day_of(row.anchor_value) == times.anchor_date


class _Planner:
    """Decides task by task, predecessors first."""

    def __init__(
        self,
        definition: Definition,
        started_at: datetime,
        anchors: Mapping[str, datetime | None],
        dates: Mapping[str, date],
        latest: dict[str, TaskRow],
        zone: tzinfo,
        now: datetime,
        spare: Collection[UUID],
    ) -> None:
        self.definition = definition
        self.started_at = started_at
        self.anchors = anchors
        self.dates = dates
        self.latest = latest
        self.zone = zone
        self.now = now
        self.spare = spare
        self.result = Plan()
        self.outlooks: dict[str, _Outlook] = {}

    def plan(self) -> Plan:
        for name in self.definition.tasks:
            self.outlook(name)
        for name, row in self.latest.items():
            if name not in self.outlooks and row.state in OPEN:
                self.cancel(row, reasons.NO_LONGER_PLANNED(task=name))
        self.result.open = any(outlook.to_come for outlook in self.outlooks.values())
        return self.result

    def outlook(self, name: str) -> _Outlook:
        declared = self.definition.tasks[name]
        if name not in self.outlooks and declared.when is not None:
            self.outlooks[name] = self.decide(declared, declared.when)
        return self.outlooks.get(name, _Outlook(why_never=reasons.PREDECESSOR_UNPLANNED(task=name)))

    def decide(self, declared: Task[Any, ..., Any], when: When) -> _Outlook:
        row = self.latest.get(declared.name)
        if row is not None and row.id in self.spare and row.state in OPEN:
            return self.keep(row, "it is being run")
        if when.predecessor_name:
            predecessor = self.outlook(when.predecessor_name)
            if predecessor.ended_at is None:
                return self.without_row(declared, when, row, predecessor)
            value: datetime | None = predecessor.ended_at
        else:
            value = self.anchors.get(when.field_name) if when.field_name else self.started_at
        if value is None:
            return self.unanchored(when, row)
        return self.with_row(declared, self.times(declared, when, value), row)

    def without_row(
        self, declared: Task[Any, ..., Any], when: When, row: TaskRow | None, predecessor: _Outlook
    ) -> _Outlook:
        """Its predecessor has not completed: no open row; foreseen, or never."""
        name = when.predecessor_name
        if row is not None and row.state in OPEN:
            if predecessor.to_come:
                self.cancel(row, reasons.RUNS_AGAIN_FIRST(task=name))
            else:
                self.cancel(row, predecessor.why_never)
        elif row is not None and row.reason_code == ReasonCode.OPERATOR:
            return _Outlook(why_never=reasons.PREDECESSOR_CALLED_OFF(task=declared.name))
        if not predecessor.to_come:
            return _Outlook(why_never=predecessor.why_never)
        expected = predecessor.expected_at and when.resolve(predecessor.expected_at, self.zone)
        self.result.foreseen.append(Foreseen(task_name=declared.name, predecessor=name, expected_at=expected))
        return _Outlook(to_come=True, expected_at=expected)

    def unanchored(self, when: When, row: TaskRow | None) -> _Outlook:
        """Its field is not set: nothing to do until it is."""
        if row is not None and row.state in OPEN:
            self.cancel(row, reasons.ANCHOR_NOT_SET(anchor=when.field_name))
        elif row is not None and row.reason_code not in _LEFT_OPEN:
            return self.ended(row)
        return _Outlook(to_come=True)

    def with_row(self, declared: Task[Any, ..., Any], times: Times, row: TaskRow | None) -> _Outlook:
        """It has a time: see that the row of this time is there."""
        if row is None:
            return self.create(declared, times, None, "it is planned by the timeline")
        if row.state not in OPEN:
            return self.again(declared, times, row)
        if (row.nominal_at, row.anchor_value) == (times.nominal_at, times.anchor_value):
            return self.keep(row, "its time stands")
        named = times.anchor.partition(":")[2] or times.anchor
        if row.state in WAITING:
            return self.move(row, times, reasons.MOVED(anchor=named))
        replaced = reasons.REPLACED(anchor=named)
        self.cancel(row, replaced)
        return self.create(declared, times, row, replaced.text)

    def again(self, declared: Task[Any, ..., Any], times: Times, row: TaskRow) -> _Outlook:
        """It has ended: that stands, unless its anchor changed and gives it a new time."""
        if row.reason_code in _LEFT_OPEN:
            return self.create(declared, times, row, f"it is wanted again after it was {row.reason_code}")
        if row.reason_code == ReasonCode.OPERATOR or _same_anchor(row, times):
            return self.ended(row)
        if times.anchor.startswith("field:") and times.nominal_at <= self.now:
            return self.ended(row)
        return self.create(declared, times, row, f"its anchor ({times.anchor}) changed after it had ended")

    def times(self, declared: Task[Any, ..., Any], when: When, value: datetime) -> Times:
        nominal = when.resolve(value, self.zone)
        expires = declared.options.expires
        return Times(
            nominal_at=nominal,
            scheduled_at=nominal,
            anchor=when.anchor,
            anchor_value=value,
            expires_at=None if expires is None else nominal + expires,
            anchor_date=self.dates.get(when.field_name),
        )

    def create(self, declared: Task[Any, ..., Any], times: Times, previous: TaskRow | None, why: str) -> _Outlook:
        self.result.changes.append(
            Create(
                task_name=declared.name,
                times=times,
                revision=previous.revision + 1 if previous else 1,
                previous=previous.id if previous else None,
                why=why,
            )
        )
        return _Outlook(to_come=True, expected_at=max(times.scheduled_at, self.now))

    def move(self, row: TaskRow, times: Times, reason: Reason) -> _Outlook:
        scheduled_at = max(times.scheduled_at, row.scheduled_at) if row.state == State.RETRYABLE else times.scheduled_at
        times = replace(times, scheduled_at=scheduled_at)
        self.result.changes.append(Move(row=row, times=times, reason=reason))
        return _Outlook(to_come=True, expected_at=max(scheduled_at, self.now))

    def cancel(self, row: TaskRow, reason: Reason) -> None:
        self.result.changes.append(Cancel(row=row, reason=reason))

    def keep(self, row: TaskRow, why: str) -> _Outlook:
        self.result.changes.append(Keep(row=row, why=why))
        return _Outlook(to_come=True, expected_at=max(row.scheduled_at, self.now))

    def ended(self, row: TaskRow) -> _Outlook:
        self.result.changes.append(Keep(row=row, why=f"it has ended ({row.reason_code})"))
        if row.state == State.COMPLETED:
            return _Outlook(ended_at=row.finished_at)
        ended = {"task": row.task_name, "state": row.state, "code": row.reason_code}
        return _Outlook(why_never=reasons.PREDECESSOR_ENDED(**ended))
