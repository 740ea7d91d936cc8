"""Write the rows of tasks that are enqueued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import router

from timeline.clocks import is_told, story_now
from timeline.django_tasks.framework import InvalidTask, TaskResult, TaskResultStatus
from timeline.django_tasks.functions import key_of
from timeline.exceptions import InvalidInput
from timeline.hooks import hooks
from timeline.ids import uuid7
from timeline.models import ScheduledTask
from timeline.payloads import check_data
from timeline.registry import registry
from timeline.store.insert import Insertion
from timeline.store.new_rows import options_of, state_at
from timeline.store.signal_dispatch import announce_times
from timeline.timing import check_time

if TYPE_CHECKING:
    from timeline.django_tasks.backend import TimelineBackend


def database_of(backend: TimelineBackend) -> str:
    """The alias of the database that its rows are in."""
    return str(backend.options.get("database") or router.db_for_write(ScheduledTask))


def write(made: Any, args: Sequence[Any], kwargs: Mapping[str, Any], backend: TimelineBackend) -> Any:
    """
    Insert the row of a task by one statement, and give its result. No lock is taken: nothing else can mean the same row. The
    database is not asked what time it is: the row says itself that it may be started.

    Raises:
        InvalidTask: if a row cannot hold the arguments, or the time; nothing is written then.
    """
    using, key = database_of(backend), uuid7()
    result = TaskResult(
        task=made,
        id=str(key),
        status=TaskResultStatus.READY,
        enqueued_at=None,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=args,
        kwargs=kwargs,
        backend=backend.alias,
        errors=[],
        worker_ids=[],
    )
    payload = {name: value for name, value in (("args", result.args), ("kwargs", result.kwargs)) if value}
    task_key = key_of(made, backend)
    declared = registry.task(task_key)[1]
    now = story_now(using) if is_told() else datetime.now(UTC)
    try:
        check_data("payload", payload)
        at = now if made.run_after is None else check_time("run_after", made.run_after)
    except InvalidInput as error:
        raise InvalidTask(str(error)) from error
    columns = {
        "id": key,
        "task_key": task_key,
        "occurrence": str(key),
        "payload": payload,
        "nominal_at": at,
        "scheduled_at": at,
        "state": state_at(at, now),
        "created_at": now,
        "expires_at": None if declared.options.expires is None else at + declared.options.expires,
        **options_of(declared),
        "priority": -made.priority,
    }
    each = {name: [value] for name, value in columns.items()}
    for tell in hooks().recorded:  # Before it: once it is committed, a worker may begin it.
        tell([key], using=using)
    Insertion(ScheduledTask, each, taken=False, using=using).send()  # Its key is new: nobody has taken its place.
    announce_times([at], now=now, using=using)
    object.__setattr__(result, "enqueued_at", now)
    return result
