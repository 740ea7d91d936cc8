"""The answers of the diff: what it reads of rows, the changes that it answers, and how one row gets its change (``Rows``)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final, Protocol
from uuid import UUID

from timeline import reasons
from timeline.definition import Task
from timeline.lifecycle import OPEN, WAITING, Reason, ReasonCode, State
from timeline.timing import When, day_of

_NEVER: Final = Reason(ReasonCode.PREDECESSOR)
# These endings decide nothing about the future: if the task is wanted again, it is made again.
LEFT_OPEN: Final = frozenset(
    {ReasonCode.SUPERSEDED, ReasonCode.DEFINITION, ReasonCode.PREDECESSOR, ReasonCode.RUN_ENDED}
)


@dataclass(frozen=True, slots=True)
class VisitPlace:
    """
    The state of a machine's run. ``moves``: how often it has moved, the number of this visit. ``tries``: its number in a row
    of visits, if tasks come later with each; None: not read.
    """

    state: str
    since: datetime
    moves: int
    tries: int | None = None

    @property
    def occurrence(self) -> str:
        """The occurrence of rows that belong to this visit."""
        return str(self.moves)


class TaskRow(Protocol):
    """The fields of a task's row that the diff reads."""

    id: UUID
    state: str
    occurrence: str
    revision: int
    nominal_at: datetime
    scheduled_at: datetime
    planned_at: datetime | None
    anchor: str
    anchor_value: datetime | None
    anchor_date: date | None
    finished_at: datetime | None
    reason_code: str

    @property
    def task_name(self) -> str:
        """Name of its method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The times of a row (aware). ``planned_at``: due by its plan, while nobody decides otherwise; None: by no plan."""

    nominal_at: datetime
    scheduled_at: datetime
    anchor: str
    anchor_value: datetime | None
    expires_at: datetime | None
    anchor_date: date | None = None
    planned_at: datetime | None = None

    def planned(self, due: datetime | None = None) -> Times:
        """The same as times of the plan; due at ``due`` if given, as after a failure. ``replace`` takes twice as long."""
        scheduled_at = due or self.scheduled_at
        if self.planned_at == self.scheduled_at == scheduled_at:
            return self
        return Times(
            nominal_at=self.nominal_at,
            scheduled_at=scheduled_at,
            anchor=self.anchor,
            anchor_value=self.anchor_value,
            expires_at=self.expires_at,
            anchor_date=self.anchor_date,
            planned_at=self.scheduled_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """A row to make. ``like``: an old row to take occurrence and payload from; without it, ``occurrence`` tells it."""

    task_name: str
    times: Times
    revision: int
    previous: UUID | None
    why: str
    like: TaskRow | None = None
    occurrence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A waiting row whose time changes."""

    row: TaskRow
    times: Times
    reason: Reason

    @property
    def why(self) -> str:
        """The reason's text."""
        return self.reason.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """An open row that is no longer wanted."""

    row: TaskRow
    reason: Reason

    @property
    def why(self) -> str:
        """The reason's text."""
        return self.reason.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """A row that needs no change."""

    row: TaskRow
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """A follow-up that gets a row if its predecessor completes. ``expected_at``: None while nobody can say."""

    task_name: str
    predecessor: str
    expected_at: datetime | None
    occurrence: str = ""


PlannedChange = Create | Move | Cancel | Keep


@dataclass(slots=True)
class Plan:
    """
    The answer of the diff: changes in the order of the definition, follow-ups that may yet come, and whether any task is open,
    foreseen, or waits for its anchor; if not, the run is finished.
    """

    changes: list[PlannedChange] = field(default_factory=list)
    foreseen: list[Foreseen] = field(default_factory=list)
    open: bool = False


@dataclass(frozen=True, slots=True)
class TaskOutlook:
    """
    The outlook of a task: it has ended, will come, or never comes.

    Args:
        ended_at: When it ended, in any way; None: it has not, or the ended row will be made again.
        to_come: Whether it is open, or may still get a row.
        expected_at: When it is expected, if anybody can say.
        why_never: Why followers that wait for its completion do not come.
    """

    completed_at: datetime | None = None
    ended_at: datetime | None = None
    to_come: bool = False
    expected_at: datetime | None = None
    why_never: Reason = _NEVER

    def since(self, when: When) -> datetime | None:
        """The time that a follower counts from; None: it is not known yet."""
        return self.ended_at if when.takes_any_end else self.completed_at


TO_COME: Final = TaskOutlook(to_come=True)  # Nobody can say when.


def outlook_of(ended: TaskRow) -> TaskOutlook:
    """The outlook of a task whose last row has ended for good."""
    if ended.state == State.COMPLETED or ended.reason_code == ReasonCode.UNTIL:  # Its series has ended.
        return TaskOutlook(ended.finished_at, ended.finished_at)
    said = {"task": ended.task_name, "state": ended.state, "code": ended.reason_code}
    if ended.occurrence:
        why = reasons.OCCURRENCE_ENDED(occurrence=ended.occurrence, **said)
    else:
        why = reasons.PREDECESSOR_ENDED(**said)
    return TaskOutlook(ended_at=ended.finished_at, why_never=why)


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
