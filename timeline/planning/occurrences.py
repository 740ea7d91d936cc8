"""Rows that another task has fanned out: they stay as they were made, and together they count as one task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from timeline import reasons
from timeline.lifecycle import OPEN, Reason
from timeline.planning.answers import Cancel, Create, Keep, Plan, PlannedChange, TaskRow, Times
from timeline.planning.outlooks import LEFT_OPEN, Outlook, outlook_of


def latest_of(rows: Iterable[TaskRow]) -> dict[str, dict[str, TaskRow]]:
    """Name of a task → occurrence (empty if the task has only one) → its latest row."""
    latest: dict[str, dict[str, TaskRow]] = defaultdict(dict)
    for row in rows:
        of_task = latest[row.task_name]
        known = of_task.get(row.occurrence)
        if known is None or known.revision < row.revision:
            of_task[row.occurrence] = row
    return latest


def keep_occurrences(
    rows: Sequence[TaskRow], times: Times, *, result: Plan, now: datetime, spare: Collection[UUID]
) -> Outlook:
    """
    Keep the rows that a completed task fanned out last, and cancel open rows that it fanned out before.

    Args:
        rows: The latest of each occurrence, in their order.
        times: Times of the rows that it fanned out last; rows with other times are older.
        result: Takes the changes.
        now: Story time.
        spare: Rows to leave as they are.
    """
    standing = []
    for row in rows:
        if row.occurrence and (row.anchor, row.anchor_value) == (times.anchor, times.anchor_value):
            standing.append(_keep(row, times, result, now))
        else:
            standing += cancel_open([row], reasons.FANNED_OUT_ANEW(task=_named(times)), result=result, spare=spare)
    return _together(standing, times)


def cancel_open(rows: Sequence[TaskRow], reason: Reason, *, result: Plan, spare: Collection[UUID]) -> list[Outlook]:
    """Cancel those of some rows that are open; give the outlooks of rows that must stay as they are."""
    spared = []
    for row in rows:
        if row.state in OPEN and row.id in spare:
            result.changes.append(Keep(row=row, why="it is being run"))
            spared.append(Outlook(to_come=True, expected_at=row.scheduled_at))
        elif row.state in OPEN:
            result.changes.append(Cancel(row=row, reason=reason))
    return spared


def end_aside(names: Collection[str], *, result: Plan, spare: Collection[UUID]) -> None:
    """
    If nothing else keeps a run open, let it end: tasks that are aside get no row, and their open rows are cancelled.

    Args:
        names: Names of the tasks that are aside.
        result: The plan so far.
        spare: Rows to leave as they are.
    """
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


def _keep(row: TaskRow, times: Times, result: Plan, now: datetime) -> Outlook:
    """The outlook of one occurrence. Its row stays, or is made again if it was cancelled only for the time being."""
    if row.state in OPEN:
        result.changes.append(Keep(row=row, why="it was fanned out"))
        return Outlook(to_come=True, expected_at=max(row.scheduled_at, now))
    if row.reason_code not in LEFT_OPEN:
        result.changes.append(Keep(row=row, why=f"it has ended ({row.reason_code})"))
        return outlook_of(row)
    result.changes.append(
        Create(
            task_name=row.task_name,
            times=times,
            revision=row.revision + 1,
            previous=row.id,
            why=f"it is wanted again after it was {row.reason_code}",
            like=row,
        )
    )
    return Outlook(to_come=True, expected_at=max(times.scheduled_at, now))


def _together(standing: Sequence[Outlook], times: Times) -> Outlook:
    """
    The common outlook. If any is still to come, so is the whole; if all have completed, it has completed at the time of the
    last; if there are none, it has completed at once.
    """
    if coming := [outlook for outlook in standing if outlook.to_come]:
        return Outlook(to_come=True, expected_at=max(outlook.expected_at or times.nominal_at for outlook in coming))
    ended_at = max([times.nominal_at, *(outlook.ended_at for outlook in standing if outlook.ended_at is not None)])
    for outlook in standing:
        if outlook.completed_at is None:
            return Outlook(ended_at=ended_at, why_never=outlook.why_never)
    return Outlook(ended_at, ended_at)


def _named(times: Times) -> str:
    return times.anchor.partition(":")[2]
