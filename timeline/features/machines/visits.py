"""Tasks bound to a state of a machine: a row for each visit of the state, which exists exactly while the visit lasts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from timeline import reasons
from timeline.features.machines.sentences import STATE_LEFT
from timeline.features.machines.table import Table
from timeline.lifecycle import OPEN, Reason
from timeline.planning.answers import Cancel, Keep, Plan, TaskRow, VisitPlace
from timeline.timing import Backoff, When, share_of, states_in

_FULL: Final = timedelta(days=1)  # The share of a jitter is measured as a part of this.


def is_wanted(when: When, place: VisitPlace | None, row: TaskRow | None) -> bool:
    """Whether there has to be such a row. If the tries were not read, they are those of when it was made: none is made."""
    if place is None or place.state not in when.during:
        return False
    if when.backoff is None:
        return True
    return row is not None if place.tries is None else when.backoff.is_wanted(place.tries)


def wait_of(backoff: Backoff, place: VisitPlace, about: Sequence[str]) -> timedelta:
    """The time after entering the state. It is always the same for one visit, with its jitter."""
    share = share_of(_FULL, *about, place.occurrence) / _FULL
    return backoff.wait(place.tries or 1, share)


def is_of_unknown_state(occurrence: str, visit: str, state: str, machine: Table | None) -> bool:
    """
    Whether a row is of the present visit to a state that the table lacks: other code moved the run there, and knows why. This
    happens during a deploy, or when one was taken back.
    """
    return machine is not None and occurrence == visit and state not in machine.rows


def leave_behind(
    rows: Iterable[TaskRow], place: VisitPlace | None, when: When, *, result: Plan, spare: Collection[UUID]
) -> None:
    """Cancel open rows of visits that are over, or of an earlier definition. ``rows``: the latest of each occurrence."""
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
    """The reason of a row whose state was left."""
    return STATE_LEFT(states=" ".join(states_in(anchor) or when.during))
