"""What fan-out adds to declarations: ``self.fan_out(…)``, which tasks may fan out, and what a plan makes of their rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from timeline.features.fan_out.declaration import payloads_of, task_of
from timeline.features.fan_out.sentences import FANNED_OUT_ANEW
from timeline.hooks import Rules
from timeline.lifecycle import OPEN
from timeline.planning.answers import (
    LEFT_OPEN,
    Create,
    Keep,
    Plan,
    TaskOutlook,
    TaskRow,
    Times,
    cancel_open,
    outlook_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from timeline.definition import Definition, Task, Timeline
    from timeline.hooks import Problem


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
            standing += cancel_open([row], FANNED_OUT_ANEW(task=_named(times)), result=result, spare=spare)
    return _together(standing, times)


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


def _fan_out(
    context: Timeline,
    task: Callable[..., Any] | Task[Any, ..., Any],
    occurrences: Mapping[str, dict[str, Any]] | Iterable[str],
) -> None:
    declared, payloads = task_of(context.definition, task), payloads_of(occurrences)
    if context._fan_out is not None:
        context._fan_out.want(declared, payloads)


def _problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    when = declared.when
    fans_out = definition.tasks.get(when.predecessor_name) if when is not None and when.is_for_each else None
    if fans_out is None:
        return
    if fans_out.options.bulk is not None:
        yield (
            f"is fanned out by {fans_out.name!r}, which takes many entities in one call.",
            f"Declare {fans_out.name!r} without bulk.",
        )
    if fans_out.is_repeated:
        yield f"is fanned out by {fans_out.name!r}, which is repeated.", "Let a task that comes once fan out."
    if fans_out.when is not None and fans_out.when.is_for_each:
        yield (
            f"is fanned out by {fans_out.name!r}, which is fanned out itself.",
            f"Let {fans_out.when.predecessor_name!r} fan out both.",
        )


RULES = Rules(of_task=(_problems,), verbs=(("fan_out", _fan_out),), occurrences=(keep_occurrences,))
