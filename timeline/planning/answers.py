"""The fields of a row that the diff reads, and the changes that it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final, Protocol
from uuid import UUID

from timeline import reasons
from timeline.lifecycle import Reason, ReasonCode, State
from timeline.timing import When

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
        """
        The same times as those of the plan; due at ``due`` if given, as after a failure. ``replace`` would take twice as long.
        """
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
