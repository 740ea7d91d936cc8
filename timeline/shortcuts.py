"""
The verbs people import. Each reads story time once, finds the database of the entity, and makes one operation call.

``using`` names another database; left out, it is the one that ``entity.save()`` would write to: what the host's routers say, or
else the one it came from. In async code, each has a twin
with an ``a`` in front; see the end of the module.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS, router

from timeline.clocks import story_now
from timeline.lifecycle import Reason
from timeline.models import Event, ScheduledTask, TimelineRun, ref_of
from timeline.operations import (
    cancelling,
    emitting,
    hastening,
    leaving,
    moving,
    reconciling,
    redriving,
    relabelling,
    scheduling,
    starting,
)
from timeline.operations.emitting import Emission
from timeline.operations.relabelling import Relabelled
from timeline.operations.scheduling import Scheduled
from timeline.operations.starting import Started
from timeline.reading import explaining, foreseeing
from timeline.reading.foreseeing import Outlook
from timeline.registry import registry

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.definition import Timeline

Tasks = ScheduledTask | UUID | Sequence[ScheduledTask | UUID]


def emit(
    name: str,
    entity: Model | None = None,
    *,
    key: str = "",
    payload: dict[str, Any] | None = None,
    actor: str = "",
    occurred_at: datetime | None = None,
    using: str | None = None,
) -> Emission:
    """
    Record a domain event in the current transaction: it ends the runs it exits and starts the runs it starts.

    See ``timeline.operations.emitting.emit`` for arguments and errors.
    """
    using = using or _alias(entity)
    return emitting.emit(
        name=name,
        entity=entity,
        key=key,
        payload={} if payload is None else payload,
        actor=actor,
        occurred_at=occurred_at,
        now=story_now(using),
        using=using,
    )


def start(
    timeline: str | type[Timeline],
    entity: Model | None = None,
    *,
    key: str = "",
    params: dict[str, Any] | None = None,
    started_at: datetime | None = None,
    using: str | None = None,
) -> Started:
    """Start a run by hand. See ``timeline.operations.starting.start`` for arguments and errors."""
    using = using or _alias(entity)
    return starting.start(
        timeline=registry.timeline(timeline).name,
        entity=entity,
        key=key,
        params={} if params is None else params,
        started_at=started_at,
        now=story_now(using),
        using=using,
    )


def leave(
    timeline: str | type[Timeline],
    entity: Model | None = None,
    *,
    reason: str,
    key: str = "",
    actor: str = "",
    using: str | None = None,
) -> TimelineRun:
    """End the open run of an entity by hand. See ``timeline.operations.leaving.leave`` for arguments and errors."""
    using = using or _alias(entity)
    name = registry.timeline(timeline).name
    return leaving.leave(
        timeline=name, entity=entity, key=key, reason=reason, actor=actor, now=story_now(using), using=using
    )


def schedule(
    task_key: str,
    entity: Model | None = None,
    *,
    at: datetime,
    payload: dict[str, Any] | None = None,
    key: str = "",
    cause: Event | None = None,
    using: str | None = None,
) -> Scheduled:
    """Schedule one task ad hoc. See ``timeline.operations.scheduling.schedule`` for arguments and errors."""
    using = using or _alias(entity)
    return scheduling.schedule(
        task_key=task_key,
        entity=entity,
        at=at,
        payload={} if payload is None else payload,
        key=key,
        cause=cause,
        now=story_now(using),
        using=using,
    )


def cancel(tasks: Tasks, *, reason: str, actor: str = "", using: str | None = None) -> list[ScheduledTask]:
    """Call tasks off. See ``timeline.operations.cancelling.cancel`` for errors."""
    ids, using = _named(tasks, using)
    return cancelling.cancel(task_ids=ids, reason=Reason.operator(reason, actor), now=story_now(using), using=using)


def move(tasks: Tasks, *, at: datetime, reason: str, actor: str = "", using: str | None = None) -> list[ScheduledTask]:
    """Give tasks another time. See ``timeline.operations.moving.move`` for arguments and errors."""
    ids, using = _named(tasks, using)
    return moving.move(task_ids=ids, at=at, reason=Reason.operator(reason, actor), now=story_now(using), using=using)


def run_now(tasks: Tasks, *, reason: str, actor: str = "", using: str | None = None) -> list[ScheduledTask]:
    """Make waiting tasks due at once. See ``timeline.operations.hastening.run_now`` for errors."""
    ids, using = _named(tasks, using)
    return hastening.run_now(task_ids=ids, reason=Reason.operator(reason, actor), now=story_now(using), using=using)


def redrive(tasks: Tasks, *, reason: str, actor: str = "", using: str | None = None) -> list[ScheduledTask]:
    """Run again what has ended, as new rows. See ``timeline.operations.redriving.redrive`` for errors."""
    ids, using = _named(tasks, using)
    return redriving.redrive(task_ids=ids, reason=Reason.operator(reason, actor), now=story_now(using), using=using)


def reconcile(entity: Model, *, using: str | None = None) -> None:
    """Let an entity's rows follow its fields after a write that no signal saw, such as ``QuerySet.update()``."""
    using = using or _alias(entity)
    reconciling.reconcile(entity=entity, now=story_now(using), using=using)


def relabel(old: str, new: str, *, using: str | None = None) -> Relabelled:
    """
    Let rows follow a model that a migration renamed or moved. See ``timeline.operations.relabelling.relabel`` for errors.

    In ``RunPython``, give ``using=schema_editor.connection.alias``.
    """
    return relabelling.relabel(old=old, new=new, using=using or router.db_for_write(ScheduledTask))


def preview(
    timeline: str | type[Timeline],
    entity: Model | None = None,
    *,
    started_at: datetime | None = None,
    using: str | None = None,
) -> list[Outlook]:
    """Say which tasks a run started now would have, and when. Writes nothing."""
    using = using or _alias(entity)
    name = registry.timeline(timeline).name
    return foreseeing.preview(timeline=name, entity=entity, started_at=started_at, now=story_now(using))


def foreseen(entity: Model | None = None, *, using: str | None = None) -> list[Outlook]:
    """Say which follow-ups of an entity's open tasks may yet come, and when. Writes nothing."""
    using = using or _alias(entity)
    return foreseeing.foreseen(entity=entity, now=story_now(using), using=using)


def explain(task: ScheduledTask) -> str:
    """Tell the story of a task in plain sentences: why it is there, when it is due, what happened, what comes next."""
    using = task._state.db or DEFAULT_DB_ALIAS
    return explaining.explain(task, now=story_now(using), using=using)


def _alias(entity: Model | None) -> str:
    if entity is None:
        return router.db_for_write(ScheduledTask)
    ref_of(entity)
    return router.db_for_write(entity.__class__, instance=entity)


def _named(tasks: Tasks, using: str | None) -> tuple[list[UUID], str]:
    several = [tasks] if isinstance(tasks, ScheduledTask | UUID) else list(tasks)
    ids = [task.pk if isinstance(task, ScheduledTask) else task for task in several]
    rows = [task for task in several if isinstance(task, ScheduledTask)]
    return ids, using or router.db_for_write(ScheduledTask, **({"instance": rows[0]} if rows else {}))


# For async code, with the same arguments, results and errors. Each call runs in the thread in which Django keeps the
# connections of the request, and each is a transaction of its own: one cannot span two awaits. What belongs together goes
# into one function, called through ``sync_to_async``.
aemit = sync_to_async(emit, thread_sensitive=True)
astart = sync_to_async(start, thread_sensitive=True)
aleave = sync_to_async(leave, thread_sensitive=True)
aschedule = sync_to_async(schedule, thread_sensitive=True)
acancel = sync_to_async(cancel, thread_sensitive=True)
amove = sync_to_async(move, thread_sensitive=True)
arun_now = sync_to_async(run_now, thread_sensitive=True)
aredrive = sync_to_async(redrive, thread_sensitive=True)
areconcile = sync_to_async(reconcile, thread_sensitive=True)
apreview = sync_to_async(preview, thread_sensitive=True)
aforeseen = sync_to_async(foreseen, thread_sensitive=True)
aexplain = sync_to_async(explain, thread_sensitive=True)
