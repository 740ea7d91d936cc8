"""Overlap: a run that the clock began is not to run while an earlier one of its timeline does."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connections

from timeline import reasons
from timeline.dialects import dialect_of
from timeline.engine.attempting import Attempt
from timeline.lifecycle import Reason, ReasonCode


def overlapping(attempts: Sequence[Attempt], *, using: str) -> dict[UUID, Reason]:
    """
    Find those whose run is to be skipped. A statement, if there are tasks of such timelines.

    Asked before anything of a run has begun, and what is decided then holds for all of it. A first attempt that was lost may
    have been lost before anybody asked, so the next asks again, unless a step is done. Only earlier runs count, and only what
    is under way of them or due: so two never skip each other, and one that was moved far ahead holds up none.

    Returns:
        Id of a task → why it must not run.
    """
    asked = [attempt for attempt in attempts if _is_asked(attempt)]
    if not asked:
        return {}
    dialect = dialect_of(using)
    with connections[using].cursor() as cursor:
        cursor.execute(
            dialect.sql("overlapped"),
            {"tasks": dialect.list_of(attempt.task.id.hex for attempt in asked)},
        )
        found = cursor.fetchall()
    return {
        _as_uuid(task_id): Reason(ReasonCode.OVERLAP, said) if said else reasons.OVERLAPS(run=key)
        for task_id, key, said in found
    }


def _is_asked(attempt: Attempt) -> bool:
    recurring = attempt.definition.recurring
    run = attempt.task.run if attempt.task.run_id is not None else None
    is_skipped = recurring is not None and recurring.overlap == "skip" and run is not None and run.once
    return is_skipped and not attempt.has_records


def _as_uuid(key: UUID | str) -> UUID:
    return key if isinstance(key, UUID) else UUID(key)
