"""What is bound to a state of a machine: a row for each time that the state is entered, there exactly while it lasts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from timeline import reasons
from timeline.lifecycle import OPEN, Reason
from timeline.planning.answers import Cancel, Keep, Plan, TaskRow
from timeline.timing import Backoff, When, share_of, states_in

_FULL: Final = timedelta(days=1)  # What the share of a jitter is measured in.


@dataclass(frozen=True, slots=True)
class Place:
    """
    Where the run of a machine is.

    Args:
        state: The state.
        since: When that was entered (aware).
        moves: How often the run has moved: the number of this visit.
        tries: The how-manieth visit of the state in a row it is, where something comes later with each; None: nobody asked.
    """

    state: str
    since: datetime
    moves: int
    tries: int | None = None

    @property
    def occurrence(self) -> str:
        """What rows of this visit are told apart by."""
        return str(self.moves)


def is_wanted(when: When, place: Place | None, row: TaskRow | None) -> bool:
    """
    Whether there is to be such a row now.

    Where nobody asked for the number of tries, it is what it was when the row was made: none is made then.
    """
    if place is None or place.state not in when.during:
        return False
    if when.backoff is None:
        return True
    return row is not None if place.tries is None else when.backoff.is_wanted(place.tries)


def wait_of(backoff: Backoff, place: Place, about: Sequence[str]) -> timedelta:
    """How long after the state was entered: for the same visit always the same, jitter included."""
    share = share_of(_FULL, *about, place.occurrence) / _FULL
    return backoff.wait(place.tries or 1, share)


def leave_behind(
    rows: Iterable[TaskRow], place: Place | None, when: When, *, result: Plan, spare: Collection[UUID]
) -> None:
    """
    Cancel what is open of visits that are over, and of what was planned otherwise before.

    Args:
        rows: The latest of each occurrence that is not of the present visit, or all of them.
        place: Where the run is; None: it is in no state.
        when: Which states they are bound to.
        result: Takes the changes.
        spare: Rows to leave as they are.
    """
    for row in rows:
        if row.state not in OPEN:
            continue
        if row.id in spare:
            result.changes.append(Keep(row=row, why="it is being run"))
        elif not row.occurrence or (
            place is not None and place.occurrence == row.occurrence and place.state in when.during
        ):
            result.changes.append(Cancel(row=row, reason=reasons.NO_LONGER_PLANNED(task=row.task_name)))
        else:
            result.changes.append(Cancel(row=row, reason=left(row.anchor, when)))


def left(anchor: str, when: When) -> Reason:
    """Why there is nothing to do any more: the state was left."""
    return reasons.STATE_LEFT(states=" ".join(states_in(anchor) or when.during))
