"""Overlap: a run that the clock began must not run while an earlier run of its timeline is under way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import connections

from timeline import reasons
from timeline.dialects import dialect_of
from timeline.engine.attempting import Attempt
from timeline.lifecycle import Reason, ReasonCode
from timeline.store.queueing import Behind, clear


def overlapping(attempts: Sequence[Attempt], *, now: datetime, using: str) -> dict[UUID, Reason | Behind]:
    """
    Find attempts whose run is to be skipped, or to wait. Two statements for the first tasks of such runs; none for others.

    A decision holds for the whole run: a run that may go on is not checked again. A first attempt that was lost may have
    been lost before it was checked, so the next attempt is checked. Only earlier runs count, and only their tasks that are
    under way or due. So two runs never refuse each other, and a run that was moved far ahead holds up none. A redriven task
    of a skipped run is checked like any other.

    Returns:
        Id of a task → why it must not run, or what it waits for.
    """
    asked = {attempt.task.id: attempt for attempt in attempts if _is_asked(attempt)}
    if not asked:
        return {}
    dialect, connection = dialect_of(using), connections[using]
    given = {
        "tasks": dialect.list_of(task_id.hex for task_id in asked),
        "now": connection.ops.adapt_datetimefield_value(now),
    }
    with connection.cursor() as cursor:
        cursor.execute(dialect.sql("overlapped"), given)
        found = {_as_uuid(task_id): (key, said) for task_id, key, said in cursor.fetchall()}
    clear(_runs_of(attempt for task_id, attempt in asked.items() if task_id not in found), using=using)
    return {task_id: _refused(asked[task_id], key, said) for task_id, (key, said) in found.items()}


def _is_asked(attempt: Attempt) -> bool:
    recurring = attempt.definition.recurring
    if recurring is None or recurring.overlap == "allow" or attempt.task.run is None:
        return False
    if attempt.declared.options.aside:  # Such as an alarm, which must come at its time.
        return False
    run = attempt.task.run
    return run.once and not run.is_cleared and not attempt.has_records


def _refused(attempt: Attempt, key: str, said: str) -> Reason | Behind:
    if said:
        return Reason(ReasonCode.OVERLAP, said)
    recurring = attempt.definition.recurring
    if recurring is not None and recurring.overlap == "queue":
        return Behind(timeline=attempt.definition.name, key=key)
    return reasons.OVERLAPS(run=key)


def _runs_of(attempts: Iterable[Attempt]) -> set[UUID]:
    return {attempt.task.run_id for attempt in attempts if attempt.task.run_id is not None}


def _as_uuid(key: UUID | str) -> UUID:
    return key if isinstance(key, UUID) else UUID(key)
