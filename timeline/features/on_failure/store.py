"""Handlers of failures: a row for each task that was discarded, whose id is its occurrence; and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django.utils.translation import gettext as _

from timeline.definition import Definition, Task
from timeline.exceptions import UnknownTask, WorkerLost
from timeline.features.on_failure.declaration import FAILED, MAX_MESSAGE, handler_of
from timeline.lifecycle import ReasonCode, State
from timeline.models import ScheduledTask
from timeline.payloads import clip
from timeline.registry import registry
from timeline.store.new_rows import columns_of, create_missing, options_of, state_at
from timeline.timing import told_time

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


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


class Failure(NamedTuple):
    """Of a row of a handler, the task that has failed; of a task that has failed, the row of its handler. None: none."""

    failed: ScheduledTask | None
    handler: ScheduledTask | None


def failure_of(task: ScheduledTask, visible: ScheduledTaskQuerySet) -> Failure:
    """What a page of a task links, of what the reader may see. No query for a task that has to do with no failure."""
    failed, row = failed_before(task), None
    if task.state == State.DISCARDED:
        row = row_after(task, using=visible.db)
    return Failure(
        failed=None if failed is None else visible.filter(pk=failed).first(),
        handler=None if row is None else visible.filter(pk=row.pk).first(),
    )


def told_failure(task: ScheduledTask, *, using: str) -> Iterator[str]:
    """Say what came of a failure. One statement, or two, if its task has ``on_failure``."""
    if (failed := failed_before(task)) is not None:
        yield _("It runs because the task %(id)s has failed for good.") % {"id": failed}
    if handler_for(task) is None:
        return
    if task.state == State.DISCARDED:
        yield from _ending(task, _("As it failed, %(task)s got the row %(id)s: %(state)s, due on %(at)s."), using)
    if task.previous_id is not None:
        before = ScheduledTask.objects.using(using).filter(pk=task.previous_id, state=State.DISCARDED).first()
        if before is not None:
            said = _("As the revision before it failed, %(task)s got the row %(id)s: %(state)s, due on %(at)s.")
            yield from _ending(before, said, using)


def _ending(failed: ScheduledTask, said: str, using: str) -> Iterator[str]:
    if (row := row_after(failed, using=using)) is not None:
        yield said % {
            "task": registry.titled(row.task_key),
            "id": row.pk,
            "state": State(row.state).label,
            "at": told_time(row.scheduled_at),
        }
