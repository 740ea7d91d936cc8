"""Make new rows: from a plan, or as the next revision of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS

from timeline.conf import get_settings
from timeline.definition import Definition, Task
from timeline.exceptions import AlreadyOpen, UnknownTask
from timeline.hooks import asked_for, hooks
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.kin import names_of
from timeline.planning import Create
from timeline.registry import registry
from timeline.store.insert import new_row, send_missing
from timeline.store.signal_dispatch import announce_times

_CARRIED_ON: Final = (  # The columns that the next revision of a row takes from it.
    *("run_id", "task_key", "occurrence", "entity_label", "entity_id", "cause_id", "payload"),
    *("nominal_at", "anchor", "anchor_value", "anchor_date", "definition_hash"),
)


def new_task(
    run: TimelineRun, definition: Definition, change: Create, *, key: UUID | None = None, now: datetime
) -> ScheduledTask:
    """
    Make the row that a plan asks for, of an existing run. Not saved. ``key``: id of the row; None: a new one. Its event may
    have come before the row, and then nobody wakes it. So a row that waits is due at once, and looks for the event.
    """
    like, declared = change.like, definition.tasks[change.task_name]
    carried = {"occurrence": like.occurrence, "payload": like.payload} if isinstance(like, ScheduledTask) else {}
    columns = {
        "run_id": run.id,
        "entity_label": run.entity_label,
        "entity_id": run.entity_id,
        "cause_id": run.started_by_id,
        **declared_columns(definition, change.task_name),
        **planned_columns(change, now=now),
        **carried,
        **(_awaited_by(declared, run, now=now) if declared.waits else {}),
        **({} if key is None else {"id": key}),
    }
    task = new_row(ScheduledTask, columns)
    task._state.fields_cache["run"] = run
    return task


def _awaited_by(declared: Task[Any, ..., Any], run: TimelineRun, *, now: datetime) -> dict[str, Any]:
    """Columns of a new row that waits for events: whose events it waits for, and that it looks for them first."""
    if declared.looks_first:
        return first_look(now)
    root = names_of(run.entity_ref, using=run._state.db or DEFAULT_DB_ALIAS)[0]
    return {"awaits_label": root.label, "awaits_id": root.id, **first_look(now)}


def first_look(now: datetime) -> dict[str, Any]:
    """Columns of a new row that has to look for the event before it waits for it: the row is due at once."""
    return {"state": State.AVAILABLE, "scheduled_at": now}


def declared_columns(definition: Definition, task_name: str) -> dict[str, Any]:
    """The columns of a new row that come from its definition."""
    declared = definition.tasks[task_name]
    return {
        "task_key": definition.task_key(task_name),
        "definition_hash": declared.fingerprint,
        **options_of(declared),
        **declared.awaits,
        **columns_of(definition.task_key(task_name), declared),
    }


def planned_columns(change: Create, *, now: datetime) -> dict[str, Any]:
    """The columns of a new row that come from its plan."""
    times = change.times
    return {
        "revision": change.revision,
        "previous_id": change.previous,
        "state": state_at(times.scheduled_at, now),
        "nominal_at": times.nominal_at,
        "scheduled_at": times.scheduled_at,
        "planned_at": times.planned_at,
        "anchor": times.anchor,
        "anchor_value": times.anchor_value,
        "anchor_date": times.anchor_date,
        "expires_at": times.expires_at,
        "created_at": now,
        **({"occurrence": change.occurrence} if change.occurrence else {}),
    }


def next_revision(task: ScheduledTask, scheduled_at: datetime, *, now: datetime) -> ScheduledTask:
    """Make the row that continues ``task``, which has ended, at another time. It may fail as often as a new task. Not saved."""
    try:
        declared = registry.task(task.task_key)[1]
        options, is_known = options_of(declared) | columns_of(task.task_key, declared), True
    except UnknownTask:
        options, is_known = {"max_attempts": task.max_attempts}, False
    for inherit in asked_for(hooks().inherits, [task]):
        options |= inherit(task, is_known=is_known)
    columns = {name: getattr(task, name) for name in _CARRIED_ON} | {
        **options,
        "revision": task.revision + 1,
        "previous_id": task.pk,
        "state": state_at(scheduled_at, now),
        "scheduled_at": scheduled_at,
        "expires_at": expiry_at(task.task_key, scheduled_at),
        "priority": task.priority,
        "queue": task.queue,
        "created_at": now,
    }
    made = new_row(ScheduledTask, columns)
    made._state.fields_cache.update(run=task.run, previous=task)
    return made


def expiry_at(task_key: str, due_at: datetime) -> datetime | None:
    """When a task expires that somebody made due at this time; None: never."""
    try:
        expires = registry.task(task_key)[1].options.expires
    except UnknownTask:
        return None
    return None if expires is None else due_at + expires


def create_missing(tasks: Sequence[ScheduledTask], *, using: str) -> list[ScheduledTask]:
    """Insert rows made at the same time; gives them, without those whose revision is open already or has the same number."""
    return send_tasks(tasks, using=using)()


def send_tasks(tasks: Sequence[ScheduledTask], *, using: str) -> Callable[[], list[ScheduledTask]]:
    """Insert rows, or send them without waiting (``pipelining``). Call the result to get what ``create_missing`` returns."""
    complete(tasks, using=using)
    inserted = send_missing(tasks, using=using)

    def done() -> list[ScheduledTask]:
        created = inserted()
        if created:
            announce_times((task.scheduled_at for task in created), now=created[0].created_at, using=using)
        return created

    return done


def complete(tasks: Sequence[ScheduledTask], *, using: str) -> None:
    """Let features set columns of new rows before they are inserted."""
    for change in asked_for(hooks().new_rows, tasks):
        change(tasks, using=using)


def create_tasks(tasks: Sequence[ScheduledTask], *, using: str) -> None:
    """Insert all rows or none. Raises ``AlreadyOpen`` if a revision of one is open, or has the same number."""
    created = {task.pk for task in create_missing(tasks, using=using)}
    for task in tasks:
        if task.pk not in created:
            raise AlreadyOpen(task)


def state_at(scheduled_at: datetime, now: datetime) -> State:
    """The state of a new row: available if it is due already."""
    return State.SCHEDULED if scheduled_at > now else State.AVAILABLE


def options_of(declared: Task[Any, ..., Any]) -> dict[str, Any]:
    """The columns that ``@task`` declares."""
    options = declared.options
    return {
        "priority": options.priority,
        "queue": options.queue,
        "max_attempts": options.retry.max_attempts or get_settings().MAX_ATTEMPTS,
    }


def columns_of(task_key: str, declared: Task[Any, ..., Any]) -> dict[str, Any]:
    """The columns that features make of what ``@task`` declares."""
    found: dict[str, Any] = {}
    for ask in asked_for(hooks().columns, [declared.options]):
        found |= ask(task_key, declared)
    return found
