"""
Verbs that change tasks: a person's decisions, and changes that the host's code asks for.

If a person decides about tasks that were shown, pass ``seen``: ids of tasks → the ``seq`` shown, ``{task.pk: task.seq}``. If
one of the tasks has changed since, nothing is done, and ``ChangedSince`` says how the task is now.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, router
from django.utils.translation import gettext_lazy as _

from timeline.clocks import story_now
from timeline.exceptions import InvalidInput
from timeline.features.holds import release as holds_release
from timeline.features.holds import verbs
from timeline.features.limits import verbs as limits_verbs  # of limits
from timeline.features.maintenance import relabel as maintenance_relabel
from timeline.features.maintenance.relabel import Relabelled
from timeline.features.rates import verbs as rates_verbs  # of rates
from timeline.features.steps import verbs as steps_verbs
from timeline.features.waits import approve as waits_approve
from timeline.lifecycle import Reason
from timeline.models import EntityRef, Event, Hold, ScheduledTask, Scope, ref_of
from timeline.operations import cancel as operations_cancel
from timeline.operations import move as operations_move
from timeline.operations import reconcile as operations_reconcile
from timeline.operations import redrive as operations_redrive
from timeline.operations import schedule as operations_schedule
from timeline.operations.redrive import Redriven
from timeline.operations.schedule import Scheduled
from timeline.operations.seen import Seen
from timeline.payloads import check_flag, unfit
from timeline.registry import registry
from timeline.shortcuts._named import Tasks, alias_of, named, named_one
from timeline.timing.offsets import Offset

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.definition import Timeline


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
    """Schedule one task ad hoc. See ``timeline.operations.schedule.schedule`` for arguments and errors."""
    using = using or alias_of(entity)
    return operations_schedule.schedule(
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
    """Cancel tasks. See ``timeline.operations.cancel.cancel`` for errors."""
    ids, using = named(tasks, using)
    why = Reason.operator(reason, actor)
    return operations_cancel.cancel(task_ids=ids, reason=why, now=story_now(using), using=using, seen=seen)


def cancel_all(entity: Model | None, *, reason: str, actor: str = "", using: str | None = None) -> list[ScheduledTask]:
    """Cancel all open tasks of an entity; None: those without an entity. See ``timeline.operations.cancel.cancel_all``."""
    using = using or alias_of(entity)
    why = Reason.operator(reason, actor)
    return operations_cancel.cancel_all(ref=ref_of(entity), reason=why, using=using)


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

    See ``timeline.operations.move.move`` for arguments and errors.
    """
    ids, using = named(tasks, using)
    why = Reason.operator(reason, actor)
    by = Offset(exact=by) if isinstance(by, timedelta) else by
    return operations_move.move(task_ids=ids, at=at, by=by, reason=why, now=story_now(using), using=using, seen=seen)


def run_now(
    tasks: Tasks, *, reason: str, actor: str = "", using: str | None = None, seen: Seen | None = None
) -> list[ScheduledTask]:
    """Make waiting tasks due at once. See ``timeline.operations.move.run_now`` for errors."""
    ids, using = named(tasks, using)
    why = Reason.operator(reason, actor)
    return operations_move.run_now(task_ids=ids, reason=why, now=story_now(using), using=using, seen=seen)


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

    See ``timeline.operations.redrive.redrive`` for arguments and errors.
    """
    ids, using = named(tasks, using)
    why = Reason.operator(reason, actor)
    return operations_redrive.redrive(
        task_ids=ids, reason=why, now=story_now(using), using=using, seen=seen, spread=spread
    )


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

    See ``timeline.operations.redrive.redrive_group`` for arguments and errors.
    """
    using = using or router.db_for_write(ScheduledTask)
    why = Reason.operator(reason, actor)
    return operations_redrive.redrive_group(group=group, reason=why, spread=spread, now=story_now(using), using=using)


def open_limit(  # of limits
    key: str,
    *,
    reason: str,
    actor: str = "",
    using: str | None = None,
    seen: Collection[UUID] | None = None,
) -> list[ScheduledTask]:
    """Open a limit that a task has left closed. See ``timeline.features.limits.verbs.open_limit`` for arguments and errors."""
    using = using or router.db_for_write(ScheduledTask)
    why = Reason.operator(reason, actor)
    return limits_verbs.open_limit(key=key, reason=why, seen=seen, now=story_now(using), using=using)


def lift_brake(  # of rates
    key: str, value: object = None, *, reason: str, actor: str = "", using: str | None = None
) -> int:
    """Lift the brake of a rate by hand. See ``timeline.features.rates.verbs.lift_brake`` for arguments and errors."""
    using = using or router.db_for_write(ScheduledTask)
    why = Reason.operator(reason, actor)
    return rates_verbs.lift_brake(key=key, value=value, reason=why, now=story_now(using), using=using)


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
    """Record that a step happened, if that was in doubt. See ``timeline.features.steps.verbs.step_happened``."""
    task_id, using = named_one(task, using)
    why = Reason.operator(reason, actor)
    return steps_verbs.step_happened(
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
    """Forget that a step was done, so that it is done again. See ``timeline.features.steps.verbs.forget_step``."""
    task_id, using = named_one(task, using)
    why = Reason.operator(reason, actor)
    return steps_verbs.forget_step(task_id=task_id, step=step, reason=why, now=story_now(using), using=using, seen=seen)


def go_on(
    task: ScheduledTask | UUID, *, reason: str, actor: str = "", using: str | None = None, seen: Seen | None = None
) -> ScheduledTask:
    """Let a task continue though its code has changed since a step was done. See ``timeline.features.steps.verbs.go_on``."""
    task_id, using = named_one(task, using)
    why = Reason.operator(reason, actor)
    return steps_verbs.go_on(task_id=task_id, reason=why, now=story_now(using), using=using, seen=seen)


def approve(
    task: ScheduledTask | UUID, *, actor: str, reason: str = "", using: str | None = None, seen: Seen | None = None
) -> ScheduledTask:
    """
    Say yes to a task that asks for approval. See ``timeline.features.waits.approve.decide_approval`` for arguments and errors.
    """
    task_id, using = named_one(task, using)
    why = Reason.operator(reason, actor)
    return waits_approve.decide_approval(task_id=task_id, approved=True, reason=why, using=using, seen=seen)


def reject(
    task: ScheduledTask | UUID, *, actor: str, reason: str = "", using: str | None = None, seen: Seen | None = None
) -> ScheduledTask:
    """
    Say no to a task that asks for approval. See ``timeline.features.waits.approve.decide_approval`` for arguments and errors.
    """
    task_id, using = named_one(task, using)
    why = Reason.operator(reason, actor)
    return waits_approve.decide_approval(task_id=task_id, approved=False, reason=why, using=using, seen=seen)


def reconcile(entity: Model, *, using: str | None = None) -> None:
    """Let the tasks of an entity follow its fields, after a write that no signal saw, such as ``QuerySet.update()``."""
    using = using or alias_of(entity)
    operations_reconcile.reconcile(entity=entity, now=story_now(using), using=using)


def relabel(old: str, new: str, *, using: str | None = None) -> Relabelled:
    """
    Change the rows about a model that a migration renamed or moved.
    See ``timeline.features.maintenance.relabel.relabel`` for errors.

    In ``RunPython``, give ``using=schema_editor.connection.alias``.
    """
    return maintenance_relabel.relabel(old=old, new=new, using=using or router.db_for_write(ScheduledTask))


def hold(
    entity: Model | EntityRef | None = None,
    *,
    task: str = "",
    timeline: str | type[Timeline] = "",
    queue: str = "",
    tag: str = "",
    everything: bool = False,
    until: datetime | None = None,
    then: str = "run",
    reason: str,
    actor: str = "",
    using: str | None = None,
) -> Hold:
    """
    Stop the tasks of an entity, of a kind, of a timeline, of a queue, with a tag, or all, until a time or until it is released.

    Args:
        entity, task, timeline, queue, tag, everything: One of them. ``task`` is a key, ``trial.remind``.
        until, reason, actor: See ``timeline.features.holds.verbs.hold``, also for errors.
        then: What happens when it ends: ``run`` due tasks, ``shift`` all tasks by the time that they were held, or ``expire``
            due tasks.
        using: Database alias.
    """
    check_flag("everything", everything)
    targets = {
        Scope.ENTITY: entity is not None,
        Scope.TASK: bool(task),
        Scope.TIMELINE: bool(timeline),
        Scope.QUEUE: bool(queue),
        Scope.TAG: bool(tag),
        Scope.EVERYTHING: everything,
    }
    scopes = [scope for scope, is_given in targets.items() if is_given]
    if len(scopes) != 1:
        problem = _("it needs one thing to hold, and only one.")
        raise InvalidInput("hold", problem, _("Give an entity, task=, timeline=, queue=, tag= or everything=True."))
    if not isinstance(entity, EntityRef):
        using = using or (alias_of(entity) if entity is not None else None)
    using = using or router.db_for_write(ScheduledTask)
    name = registry.timeline(timeline).name if timeline else ""
    return verbs.hold(
        scope=scopes[0],
        target=task or name or queue or tag,
        entity=entity,
        until=until,
        then=then,
        reason=reason,
        actor=actor,
        now=story_now(using),
        using=using,
    )


def release(hold: Hold | UUID, *, actor: str = "", reason: str = "", using: str | None = None) -> Hold:
    """End a hold. See ``timeline.features.holds.release.release`` for what happens to its tasks, and for errors."""
    if isinstance(hold, Hold):
        using = using or hold._state.db or DEFAULT_DB_ALIAS
    hold_id = hold.pk if isinstance(hold, Hold) else _as_id(hold)
    using = using or router.db_for_write(ScheduledTask)
    return holds_release.release(hold_id=hold_id, actor=actor, reason=reason, now=story_now(using), using=using)


def _as_id(hold: object) -> UUID:
    """
    The id of a hold, which may be given as text.

    Raises:
        InvalidInput: naming ``hold``.
    """
    with suppress(ValueError):
        if isinstance(hold, UUID | str):
            return UUID(str(hold))
    raise unfit("hold", hold, _("Give a hold, or its id as a UUID."))
