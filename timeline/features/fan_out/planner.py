"""Rows that another task has fanned out: they stay as they were made, and together they count as one task."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from timeline import reasons
from timeline.lifecycle import OPEN, Reason
from timeline.planning.answers import (
    LEFT_OPEN,
    Cancel,
    Create,
    Keep,
    Plan,
    PlannedChange,
    TaskOutlook,
    TaskRow,
    Times,
    outlook_of,
)


def keep_occurrences(
    rows: Sequence[TaskRow], times: Times, *, result: Plan, now: datetime, spare: Collection[UUID]
) -> TaskOutlook:
    """
    Keep the rows fanned out last, and cancel open ones with other times. ``rows``: the latest of each occurrence, in order.
    """
    standing = []
    for row in rows:
        if row.occurrence and (row.anchor, row.anchor_value) == (times.anchor, times.anchor_value):
            standing.append(_keep(row, times, result, now))
        else:
            standing += cancel_open([row], reasons.FANNED_OUT_ANEW(task=_named(times)), result=result, spare=spare)
    return _together(standing, times)


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


def _keep(row: TaskRow, times: Times, result: Plan, now: datetime) -> TaskOutlook:
    """The outlook of one occurrence. Its row stays, or is made again if it was cancelled only for the time being."""
    if row.state in OPEN:
        result.changes.append(Keep(row=row, why="it was fanned out"))
        return TaskOutlook(to_come=True, expected_at=max(row.scheduled_at, now))
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
    return TaskOutlook(to_come=True, expected_at=max(times.scheduled_at, now))


def _together(standing: Sequence[TaskOutlook], times: Times) -> TaskOutlook:
    """The common outlook: to come if any is, completed when the last is; with none, completed at once."""
    if coming := [outlook for outlook in standing if outlook.to_come]:
        return TaskOutlook(to_come=True, expected_at=max(outlook.expected_at or times.nominal_at for outlook in coming))
    ended_at = max([times.nominal_at, *(outlook.ended_at for outlook in standing if outlook.ended_at is not None)])
    for outlook in standing:
        if outlook.completed_at is None:
            return TaskOutlook(ended_at=ended_at, why_never=outlook.why_never)
    return TaskOutlook(ended_at, ended_at)


def _named(times: Times) -> str:
    return times.anchor.partition(":")[2]
