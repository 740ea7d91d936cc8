"""The rows of handlers of failures: one for each task that was discarded, whose id is their occurrence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from timeline.definition import Definition, Task
from timeline.exceptions import UnknownTask, WorkerLost
from timeline.features.on_failure.declaration import FAILED, MAX_MESSAGE, handler_of
from timeline.lifecycle import ReasonCode
from timeline.models import ScheduledTask
from timeline.payloads import clip
from timeline.registry import registry
from timeline.store.new_rows import columns_of, create_missing, options_of, state_at


def write_handlers(tasks: Sequence[ScheduledTask], *, now: datetime, using: str) -> None:
    """
    Write the rows for tasks that were discarded in this transaction, in the order of their ids: so two transactions cannot
    deadlock. No lock of the entity is taken; a row that is there already stays.
    """
    rows = [row for task in sorted(tasks, key=lambda task: task.pk) for row in _row_for(task, now)]
    if rows:
        create_missing(rows, using=using)


def _row_for(task: ScheduledTask, now: datetime) -> Iterator[ScheduledTask]:
    if (found := handler_for(task)) is None:
        return
    definition, handler = found
    key, expires = definition.task_key(handler.name), handler.options.expires
    yield ScheduledTask(
        task_key=key,
        entity_label=task.entity_label,
        entity_id=task.entity_id,
        occurrence=str(task.pk),
        payload={FAILED: _told(task)},
        state=state_at(now, now),
        nominal_at=now,
        scheduled_at=now,
        created_at=now,
        expires_at=None if expires is None else now + expires,
        **options_of(handler),
        **columns_of(key, handler),
    )


def handler_for(task: ScheduledTask) -> tuple[Definition, Task[Any, ..., Any]] | None:
    """The handler of a task's failure, with the timeline of both; None: it has none here."""
    try:
        definition, declared = registry.task(task.task_key)
    except UnknownTask:
        return None
    handler = handler_of(definition, declared)
    return None if handler is None else (definition, handler)


def _told(task: ScheduledTask) -> dict[str, Any]:
    kind, _colon, message = task.error.partition(": ")
    if task.reason_code == ReasonCode.WORKER_LOST:  # What it has of an error is of an attempt before.
        kind, message = f"{WorkerLost.__module__}.{WorkerLost.__qualname__}", task.reason
    return {
        "task": str(task.pk),
        "task_key": task.task_key,
        "attempt": task.attempt,
        "class": kind,
        "message": clip(message, MAX_MESSAGE),
        "reason": task.reason_code,
    }


def row_after(task: ScheduledTask, *, using: str) -> ScheduledTask | None:
    """The latest row of the handler of a discarded task; None: there is none. One statement, if it has a handler."""
    if (found := handler_for(task)) is None:
        return None
    definition, handler = found
    rows = ScheduledTask.objects.using(using).filter(
        task_key=definition.task_key(handler.name),
        entity_label=task.entity_label,
        entity_id=task.entity_id,
        run__isnull=True,
        occurrence=str(task.pk),
    )
    return rows.order_by("-revision").first()


def failed_before(task: ScheduledTask) -> UUID | None:
    """Of the row of a handler, the task that has failed; None: it is none, even if its payload looks like it."""
    told = task.payload.get(FAILED) if isinstance(task.payload, dict) else None
    if task.run_id is not None or not isinstance(told, dict) or told.get("task") != task.occurrence:
        return None
    with suppress(ValueError):
        return UUID(task.occurrence)
    return None
