"""
Verbs that change tasks: a person's decisions, and changes that the host's code asks for.

If a person decides about tasks that were shown, pass ``seen``: ids of tasks → the ``seq`` shown, ``{task.pk: task.seq}``. If
one of the tasks has changed since, nothing is done, and ``ChangedSince`` says how the task is now.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import router

from timeline.clocks import story_now
from timeline.lifecycle import Reason
from timeline.models import Event, ScheduledTask, ref_of
from timeline.operations import (
    approving,
    cancelling,
    deciding,
    hastening,
    moving,
    opening,
    reconciling_entity,
    redriving,
    redriving_groups,
    relabelling,
    scheduling,
)
from timeline.operations._seen import Seen
from timeline.operations.redriving_groups import Redriven
from timeline.operations.relabelling import Relabelled
from timeline.operations.scheduling import Scheduled
from timeline.shortcuts._named import Tasks, alias_of, named, named_one
from timeline.timing.offsets import Offset

if TYPE_CHECKING:
    from django.db.models import Model


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
    using = using or alias_of(entity)
    return scheduling.schedule(
        task_key=task_key,
        entity=entity,
        at=at,
        payload={} if payload is None else payload,
        key=key,
        cause=cause,
        using=using,
    )


def cancel(
    tasks: Tasks, *, reason: str, actor: str = "", using: str | None = None, seen: Seen | None = None
) -> list[ScheduledTask]:
    """Cancel tasks. See ``timeline.operations.cancelling.cancel`` for errors."""
    ids, using = named(tasks, using)
    why = Reason.operator(reason, actor)
    return cancelling.cancel(task_ids=ids, reason=why, now=story_now(using), using=using, seen=seen)


def cancel_all(entity: Model | None, *, reason: str, actor: str = "", using: str | None = None) -> list[ScheduledTask]:
    """Cancel all open tasks of an entity; None: those without an entity. See ``timeline.operations.cancelling.cancel_all``."""
    using = using or alias_of(entity)
    why = Reason.operator(reason, actor)
    return cancelling.cancel_all(ref=ref_of(entity), reason=why, using=using)


def move(
    tasks: Tasks,
    *,
    at: datetime | None = None,
    by: timedelta | Offset | None = None,
    reason: str,
    actor: str = "",
    using: str | None = None,
    seen: Seen | None = None,
) -> list[ScheduledTask]:
    """
    Give tasks another time: all of them the time ``at``, or each a time that is ``by`` later than its own (negative: earlier).

    See ``timeline.operations.moving.move`` for arguments and errors.
    """
    ids, using = named(tasks, using)
    why = Reason.operator(reason, actor)
    by = Offset(exact=by) if isinstance(by, timedelta) else by
    return moving.move(task_ids=ids, at=at, by=by, reason=why, now=story_now(using), using=using, seen=seen)


def run_now(
    tasks: Tasks, *, reason: str, actor: str = "", using: str | None = None, seen: Seen | None = None
) -> list[ScheduledTask]:
    """Make waiting tasks due at once. See ``timeline.operations.hastening.run_now`` for errors."""
    ids, using = named(tasks, using)
    why = Reason.operator(reason, actor)
    return hastening.run_now(task_ids=ids, reason=why, now=story_now(using), using=using, seen=seen)


def redrive(
    tasks: Tasks,
    *,
    reason: str,
    actor: str = "",
    using: str | None = None,
    seen: Seen | None = None,
    spread: timedelta | None = None,
) -> list[ScheduledTask]:
    """
    Run tasks that have ended again, as new rows; with ``spread``, one after the other within that time.

    See ``timeline.operations.redriving.redrive`` for arguments and errors.
    """
    ids, using = named(tasks, using)
    why = Reason.operator(reason, actor)
    return redriving.redrive(task_ids=ids, reason=why, now=story_now(using), using=using, seen=seen, spread=spread)


def redrive_group(
    group: str,
    *,
    reason: str,
    actor: str = "",
    spread: timedelta | None = None,
    using: str | None = None,
) -> Redriven:
    """
    Run a group of dead letters again.

    See ``timeline.operations.redriving_groups.redrive_group`` for arguments and errors.
    """
    using = using or router.db_for_write(ScheduledTask)
    why = Reason.operator(reason, actor)
    return redriving_groups.redrive_group(group=group, reason=why, spread=spread, now=story_now(using), using=using)


def open_limit(
    key: str,
    *,
    reason: str,
    actor: str = "",
    using: str | None = None,
    seen: Collection[UUID] | None = None,
) -> list[ScheduledTask]:
    """Open a limit that a task has left closed. See ``timeline.operations.opening.open_limit`` for arguments and errors."""
    using = using or router.db_for_write(ScheduledTask)
    why = Reason.operator(reason, actor)
    return opening.open_limit(key=key, reason=why, seen=seen, now=story_now(using), using=using)


def step_happened(
    task: ScheduledTask | UUID,
    step: str,
    result: object = None,
    *,
    reason: str,
    actor: str = "",
    using: str | None = None,
    seen: Seen | None = None,
) -> ScheduledTask:
    """Record that a step happened, if that was in doubt. See ``timeline.operations.deciding.step_happened``."""
    task_id, using = named_one(task, using)
    why = Reason.operator(reason, actor)
    return deciding.step_happened(
        task_id=task_id, step=step, result=result, reason=why, now=story_now(using), using=using, seen=seen
    )


def forget_step(
    task: ScheduledTask | UUID,
    step: str,
    *,
    reason: str,
    actor: str = "",
    using: str | None = None,
    seen: Seen | None = None,
) -> ScheduledTask:
    """Forget that a step was done, so that it is done again. See ``timeline.operations.deciding.forget_step``."""
    task_id, using = named_one(task, using)
    why = Reason.operator(reason, actor)
    return deciding.forget_step(task_id=task_id, step=step, reason=why, now=story_now(using), using=using, seen=seen)


def go_on(
    task: ScheduledTask | UUID, *, reason: str, actor: str = "", using: str | None = None, seen: Seen | None = None
) -> ScheduledTask:
    """Let a task continue though its code has changed since a step was done. See ``timeline.operations.deciding.go_on``."""
    task_id, using = named_one(task, using)
    why = Reason.operator(reason, actor)
    return deciding.go_on(task_id=task_id, reason=why, now=story_now(using), using=using, seen=seen)


def approve(
    task: ScheduledTask | UUID, *, actor: str, reason: str = "", using: str | None = None, seen: Seen | None = None
) -> ScheduledTask:
    """
    Say yes to a task that asks for approval. See ``timeline.operations.approving.decide_approval`` for arguments and errors.
    """
    task_id, using = named_one(task, using)
    why = Reason.operator(reason, actor)
    return approving.decide_approval(task_id=task_id, approved=True, reason=why, using=using, seen=seen)


def reject(
    task: ScheduledTask | UUID, *, actor: str, reason: str = "", using: str | None = None, seen: Seen | None = None
) -> ScheduledTask:
    """
    Say no to a task that asks for approval. See ``timeline.operations.approving.decide_approval`` for arguments and errors.
    """
    task_id, using = named_one(task, using)
    why = Reason.operator(reason, actor)
    return approving.decide_approval(task_id=task_id, approved=False, reason=why, using=using, seen=seen)


def reconcile(entity: Model, *, using: str | None = None) -> None:
    """Let the tasks of an entity follow its fields, after a write that no signal saw, such as ``QuerySet.update()``."""
    using = using or alias_of(entity)
    reconciling_entity.reconcile(entity=entity, now=story_now(using), using=using)


def relabel(old: str, new: str, *, using: str | None = None) -> Relabelled:
    """
    Change the rows about a model that a migration renamed or moved. See ``timeline.operations.relabelling.relabel`` for errors.

    In ``RunPython``, give ``using=schema_editor.connection.alias``.
    """
    return relabelling.relabel(old=old, new=new, using=using or router.db_for_write(ScheduledTask))
