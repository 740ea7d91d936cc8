"""One row at a time: make, move, keep or cancel it, so that there is a row with the wanted time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from timeline import reasons
from timeline.definition import Task
from timeline.lifecycle import OPEN, WAITING, Reason, ReasonCode, State
from timeline.planning.answers import (
    LEFT_OPEN,
    TO_COME,
    Cancel,
    Create,
    Keep,
    Move,
    Plan,
    PlannedChange,
    TaskOutlook,
    TaskRow,
    Times,
    outlook_of,
)
from timeline.timing import When, day_of


def _same_anchor(row: TaskRow, times: Times) -> bool:
    """Whether the anchor is unchanged: a date is the same in every zone. A row without a date gets it from its midnight."""
    if times.anchor_date is None or row.anchor_value is None:
        return row.anchor_value == times.anchor_value
    if row.anchor_date is not None:
        return row.anchor_date == times.anchor_date
    return row.anchor_value == times.anchor_value or day_of(row.anchor_value) == times.anchor_date


def is_due_by_decision(nominal_at: datetime, scheduled_at: datetime, planned_at: datetime | None) -> bool:
    """Whether somebody has decided when a row is due, and not a plan. Then a changed definition does not change this."""
    return planned_at is None and scheduled_at != nominal_at


class Rows:
    """Decides row by row; the answers go to ``result``."""

    def __init__(self, result: Plan, now: datetime) -> None:
        self._plan, self._now = result, now

    def with_row(
        self, declared: Task[Any, ..., Any], times: Times, row: TaskRow | None, occurrence: str = ""
    ) -> TaskOutlook:
        """The task has a time: make sure that there is a row with this time."""
        if row is None:
            return self.create(declared, times, None, "it is planned by the timeline", occurrence)
        if row.state not in OPEN:
            return self.again(declared, times, row)
        if (row.nominal_at, row.anchor_value) == (times.nominal_at, times.anchor_value):
            if self._is_outdated(row, times):
                return self.move(row, times, reasons.HOURS_CHANGED())
            return self.keep(row, "its time stands")
        if row.anchor_value == times.anchor_value and self._is_moved_by_somebody(row):
            return self.keep(row, "somebody has moved it, and what it counts from has not changed")
        named = times.anchor.partition(":")[2] or times.anchor
        if row.state in WAITING:
            rests = bool(declared.when and declared.when.awaits) and row.reason_code == ReasonCode.WAITING
            return self.move(row, times, reasons.MOVED(anchor=named), backs_off=not rests)
        replaced = reasons.REPLACED(anchor=named)
        self.cancel(row, replaced)
        return self.create(declared, times, row, replaced.text)

    def _is_outdated(self, row: TaskRow, times: Times) -> bool:
        """
        Whether it waits for an old time of its plan, for example as the window has changed; not if it was moved, or is due.
        """
        is_as_planned = row.state == State.SCHEDULED and row.scheduled_at == row.planned_at
        return is_as_planned and row.scheduled_at > self._now and row.scheduled_at != times.scheduled_at

    @staticmethod
    def _is_moved_by_somebody(row: TaskRow) -> bool:
        is_moved = row.state == State.SCHEDULED and row.reason_code == ReasonCode.MOVED
        return is_moved and is_due_by_decision(row.nominal_at, row.scheduled_at, row.planned_at)

    def again(self, declared: Task[Any, ..., Any], times: Times, row: TaskRow) -> TaskOutlook:
        """The row has ended: it stays ended, unless its anchor changed and gives a new time."""
        if row.reason_code in LEFT_OPEN:
            return self.create(declared, times, row, f"it is wanted again after it was {row.reason_code}")
        if row.reason_code == ReasonCode.OPERATOR or _same_anchor(row, times):
            return self.ended(row)
        if times.anchor.startswith("field:") and times.nominal_at <= self._now:
            return self.ended(row)
        return self.create(declared, times, row, f"its anchor ({times.anchor}) changed after it had ended")

    def unanchored(self, when: When, row: TaskRow | None) -> TaskOutlook:
        """The field is not set: nothing to do until it is."""
        if row is not None and row.state in OPEN:
            self.cancel(row, reasons.ANCHOR_NOT_SET(anchor=when.field_name))
        elif row is not None and row.reason_code not in LEFT_OPEN:
            return self.ended(row)
        return TO_COME

    def stands(self, row: TaskRow | None) -> TaskOutlook:
        """The row stays as it is, whatever time it would get now."""
        if row is None:
            return TaskOutlook()
        return self.keep(row, "its time stands") if row.state in OPEN else self.ended(row)

    def create(
        self, declared: Task[Any, ..., Any], times: Times, previous: TaskRow | None, why: str, occurrence: str = ""
    ) -> TaskOutlook:
        self._plan.changes.append(
            Create(
                task_name=declared.name,
                times=times.planned(),
                revision=previous.revision + 1 if previous else 1,
                previous=previous.id if previous else None,
                why=why,
                like=previous if previous and previous.occurrence else None,
                occurrence=occurrence,
            )
        )
        return TaskOutlook(to_come=True, expected_at=max(times.scheduled_at, self._now))

    def move(self, row: TaskRow, times: Times, reason: Reason, *, backs_off: bool = True) -> TaskOutlook:
        """
        Give the row its new time; after a failure it waits for its backoff, unless it rests for an event until a deadline.
        """
        is_later = backs_off and row.state == State.RETRYABLE
        scheduled_at = max(times.scheduled_at, row.scheduled_at) if is_later else times.scheduled_at
        self._plan.changes.append(Move(row=row, times=times.planned(scheduled_at), reason=reason))
        return TaskOutlook(to_come=True, expected_at=max(scheduled_at, self._now))

    def cancel(self, row: TaskRow, reason: Reason) -> None:
        self._plan.changes.append(Cancel(row=row, reason=reason))

    def keep(self, row: TaskRow, why: str) -> TaskOutlook:
        self._plan.changes.append(Keep(row=row, why=why))
        return TaskOutlook(to_come=True, expected_at=max(row.scheduled_at, self._now))

    def ended(self, row: TaskRow) -> TaskOutlook:
        self._plan.changes.append(Keep(row=row, why=f"it has ended ({row.reason_code})"))
        return outlook_of(row)


def cancel_open(rows: Sequence[TaskRow], reason: Reason, *, result: Plan, spare: Collection[UUID]) -> list[TaskOutlook]:
    """Cancel those of some rows that are open; give the outlooks of rows that must stay as they are."""
    spared = []
    for row in rows:
        if row.state in OPEN and row.id in spare:
            result.changes.append(Keep(row=row, why="it is being run"))
            spared.append(TaskOutlook(to_come=True, expected_at=row.scheduled_at))
        elif row.state in OPEN:
            result.changes.append(Cancel(row=row, reason=reason))
    return spared


def keep_open(rows: Sequence[TaskRow], result: Plan) -> bool:
    """Let open rows rest whose task this code does not have. Gives whether there are any."""
    resting = [row for row in rows if row.state in OPEN]
    result.changes += [Keep(row=row, why="this code does not have its task: it rests") for row in resting]
    return bool(resting)


def end_aside(names: Collection[str], *, result: Plan, spare: Collection[UUID]) -> None:
    """If nothing else keeps a run open, let it end: tasks that are aside get no row, and open rows of theirs are cancelled."""
    ended: list[PlannedChange] = []
    for change in result.changes:
        if isinstance(change, Create):
            ended += [] if change.task_name in names else [change]
        elif change.row.task_name in names and change.row.state in OPEN and change.row.id not in spare:
            ended.append(Cancel(row=change.row, reason=reasons.RUN_HAS_ENDED()))
        else:
            ended.append(change)
    result.changes = ended
    result.foreseen = [foreseen for foreseen in result.foreseen if foreseen.task_name not in names]
