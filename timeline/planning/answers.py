"""What the diff reads of a row, and the changes it answers with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Protocol
from uuid import UUID

from timeline.lifecycle import Reason


class TaskRow(Protocol):
    """What the diff reads of a task's row."""

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
    """
    What a row remembers of its time. All aware. ``planned_at`` is when its plan has it due, for as long as nobody decides
    otherwise; None: that is no plan's.
    """

    nominal_at: datetime
    scheduled_at: datetime
    anchor: str
    anchor_value: datetime | None
    expires_at: datetime | None
    anchor_date: date | None = None
    planned_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """
    A row to be made; ``like`` one that is one of many: with its occurrence and its payload.

    ``occurrence`` is which of many it is, where there is none like it.
    """

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
    """A row that is as it should be."""

    row: TaskRow
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """
    A follow-up that gets a row if its predecessor completes; ``expected_at`` is None while nobody can say when.

    ``occurrence``: which one of a task that comes again and again, whose predecessor is the one before it.
    """

    task_name: str
    predecessor: str
    expected_at: datetime | None
    occurrence: str = ""


PlannedChange = Create | Move | Cancel | Keep


@dataclass(slots=True)
class Plan:
    """
    The answer.

    Args:
        changes: What to do, in the order of the definition.
        foreseen: Follow-ups that may yet come.
        open: Whether anything is open, foreseen, or waits for its anchor to be set; if not, the run is finished.
    """

    changes: list[PlannedChange] = field(default_factory=list)
    foreseen: list[Foreseen] = field(default_factory=list)
    open: bool = False
