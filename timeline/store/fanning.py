"""Write the rows that a task fans out, one for each occurrence, together with its outcome; and tell whether any are open."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db import connections

from timeline import reasons
from timeline.dialects import dialect_of
from timeline.lifecycle import OPEN, Trigger
from timeline.models import ScheduledTask, TimelineRun
from timeline.planning import Create, Times
from timeline.registry import registry
from timeline.store.changes import Write
from timeline.store.competing import hand_on
from timeline.store.creating import create_tasks, expiry_at, new_task
from timeline.store.writing import apply

Kind = tuple[UUID | None, str]  # Id of a run, key of a task.
Place = tuple[UUID | None, str, str]  # Id of a run, key of a task, occurrence.


def write_fanned_out(writes: Iterable[Write], runs: Mapping[UUID, TimelineRun], *, now: datetime, using: str) -> None:
    """
    Insert the rows that completed tasks fan out. The rows are due at once. Any number of rows takes a fixed number of
    statements.

    If there is a row of an occurrence already, because the task was run before, the new row is its next revision. If that row
    is still open, it is cancelled first, since the new row replaces it.

    Args:
        writes: Writes that have been made.
        runs: The runs by their ids, as the caller has locked them. A run that has ended gets no rows.
        now: Story time.
        using: Database alias.
    """
    wanted = [write for write in writes if write.fans_out and _run_of(write, runs).is_open]
    if not wanted:
        return
    earlier = _earlier(wanted, using=using)
    latest = {_place(row): row for row in sorted(earlier, key=lambda row: row.revision)}
    rows = [row for write in wanted for row in _rows_of(write, runs, latest, now=now)]
    _make_room(wanted, earlier, rows, now=now, using=using)
    create_tasks(rows, using=using)


def still_open(kinds: Collection[Kind], *, using: str) -> set[Kind]:
    """Which of these kinds have a task in their run that has not ended. One statement, with one look in an index for each."""
    if not kinds:
        return set()
    dialect, pairs = dialect_of(using), [(run_id.hex, task_key) for run_id, task_key in kinds if run_id is not None]
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("still_open"), dialect.entities_of(pairs))
        return {(UUID(str(run_id)), task_key) for run_id, task_key in cursor.fetchall()}


def _run_of(write: Write, runs: Mapping[UUID, TimelineRun]) -> TimelineRun:
    assert write.task.run_id is not None  # noqa: S101 (an ad hoc task fans out nothing)
    return runs[write.task.run_id]


def _earlier(wanted: Sequence[Write], *, using: str) -> list[ScheduledTask]:
    """Lock the rows that were fanned out before."""
    keys = {key for write in wanted for key in _keys(write)}
    runs = {write.task.run_id for write in wanted}
    earlier = ScheduledTask.objects.using(using).filter(run__in=runs, task_key__in=keys).defer("payload", "result")
    return list(earlier.by_id().locked())


def _make_room(
    wanted: Sequence[Write],
    earlier: Sequence[ScheduledTask],
    rows: Sequence[ScheduledTask],
    *,
    now: datetime,
    using: str,
) -> None:
    """Cancel open rows that were fanned out before. The rows that replace them take over their places of limits."""
    by_key = {key: write.task for write in wanted for key in _keys(write)}
    writes = [
        Write(task=row, triggers=(Trigger.CANCEL,), reason=reasons.FANNED_OUT_ANEW(task=by_key[row.task_key].task_name))
        for row in earlier
        if row.state in OPEN
    ]
    apply(hand_on(writes, rows, earlier=earlier, using=using), now=now, using=using)


def _keys(write: Write) -> list[str]:
    return [f"{write.task.timeline}.{name}" for name in write.fans_out]


def _place(row: ScheduledTask) -> Place:
    return row.run_id, row.task_key, row.occurrence


def _rows_of(
    write: Write, runs: Mapping[UUID, TimelineRun], latest: Mapping[Place, ScheduledTask], *, now: datetime
) -> Iterator[ScheduledTask]:
    run, since = _run_of(write, runs), write.task.finished_at or now
    definition, _declared = registry.task(write.task.task_key)
    for name, payloads in write.fans_out.items():
        task_key = definition.task_key(name)
        times = Times(
            nominal_at=since,
            scheduled_at=since,
            anchor=f"each:{write.task.task_name}",
            anchor_value=since,
            expires_at=expiry_at(task_key, since),
        )
        for occurrence, payload in payloads.items():
            before = latest.get((run.pk, task_key, occurrence))
            revision, previous = (before.revision + 1, before.pk) if before else (1, None)
            change = Create(task_name=name, times=times, revision=revision, previous=previous, why="it is fanned out")
            row = new_task(run, definition, change, now=now)
            row.occurrence, row.payload = occurrence, payload
            yield row
