"""The fields of a row that the diff reads, and the changes that it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Protocol
from uuid import UUID

from timeline.lifecycle import Reason


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
    """
    The times of a row, all aware. ``planned_at`` is the due time of its plan, while nobody decides otherwise; None: its due
    time comes from no plan.
    """

    nominal_at: datetime
    scheduled_at: datetime
    anchor: str
    anchor_value: datetime | None
    expires_at: datetime | None
    anchor_date: date | None = None
    planned_at: datetime | None = None

    def planned(self, due: datetime | None = None) -> Times:
        """
        The same times, as those of the plan. The row is due at ``due`` if that is given: after a failure it waits longer.

        The instance is made directly, since ``replace`` takes twice as long.
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
    """
    A row that has to be made; ``like`` is an old row with the same occurrence and payload, if the task has many occurrences.

    ``occurrence`` is the occurrence of the new row, if there is no such old row.
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
    """A row that needs no change."""

    row: TaskRow
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """
    A follow-up that gets a row if its predecessor completes; ``expected_at`` is None while nobody can say when.

    ``occurrence``: the occurrence of a repeated task, whose predecessor is the occurrence before it.
    """

    task_name: str
    predecessor: str
    expected_at: datetime | None
    occurrence: str = ""


PlannedChange = Create | Move | Cancel | Keep


@dataclass(slots=True)
class Plan:
    """
    The answer of the diff.

    Args:
        changes: What to do, in the order of the definition.
        foreseen: Follow-ups that may yet come.
        open: Whether any task is open, foreseen, or waits for its anchor to be set; if not, the run is finished.
    """

    changes: list[PlannedChange] = field(default_factory=list)
    foreseen: list[Foreseen] = field(default_factory=list)
    open: bool = False
