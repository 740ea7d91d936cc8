"""Cancel: call tasks off and record why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from timeline.clocks import story_now
from timeline.dialects import dialect_of
from timeline.hooks import hooks
from timeline.lifecycle import Reason, State, Trigger, target
from timeline.models import EntityRef, ScheduledTask
from timeline.models.kin import names_of
from timeline.operations.current import refuse_own
from timeline.operations.leave import call_off
from timeline.operations.reconcile import reconcile_locked
from timeline.operations.seen import Seen, refuse_changed
from timeline.registry import registry
from timeline.store.locks import lock_entity_now, lock_rows, lock_runs, lock_tasks_with_runs
from timeline.store.returned_rows import COLUMNS
from timeline.store.transactions import atomic, in_transaction
from timeline.store.transition import Write, apply


def cancel(
    *, task_ids: Sequence[UUID], reason: Reason, now: datetime, using: str, seen: Seen | None = None
) -> list[ScheduledTask]:
    """
    Call tasks off and record why. A task that a worker is running is cancelled too: its work in this database is rolled back.

    Args:
        task_ids: Primary keys, any number; all are cancelled or none.
        reason: Code from the closed set, text shown to people, and who decided.
        seen: Task id → its ``seq`` when it was shown to the person who decides; None: nothing is checked.

    Returns:
        The tasks, in state ``cancelled``, in the order given.

    Raises:
        ScheduledTask.DoesNotExist: if one of them is not there.
        ChangedSince: if one of them has changed since it was seen.
        TransitionNotAllowed: if one of them has ended already, or is the task of the handler that calls this: a handler raises
            ``Cancel`` instead. Nothing is changed then.
    """
    with in_transaction(using):
        tasks, locked = lock_tasks_with_runs(task_ids, using=using)
        refuse_changed(tasks, seen)
        refuse_own(tasks, "cancel")
        for task in tasks:
            target(State(task.state), Trigger.CANCEL, task=task.pk)
        writes = [Write(task=task, triggers=(Trigger.CANCEL,), reason=reason) for task in tasks]
        with atomic(using=using, savepoint=False):
            done = apply(writes, now=now, using=using)
            reconcile_locked(locked.runs, locked.entities, now=now, using=using, lenient=True)
            for tell in hooks().ends:
                tell(tasks, now=now, using=using)
    return done


def cancel_all(*, ref: EntityRef, reason: Reason, now: datetime | None = None, using: str) -> list[ScheduledTask]:
    """
    Call off all open tasks of an entity, in runs and without, for every model of its family. A task that this thread is
    running now is left out: it records its own outcome.

    A run without open tasks is finished, and its timeline may be started again. To end runs by name, use ``leave``.

    Args:
        ref: The entity, which need not exist any more; ``NO_ENTITY``: the tasks that are about no entity.
        reason: Code from the closed set, text shown to people, and who decided.

    Returns:
        The tasks, in state ``cancelled``, the oldest first; none if nothing was open.
    """
    with atomic(using=using, savepoint=False):
        names = names_of(ref, using=using)
        if len(names) == 1:
            _locked, now = lock_entity_now(ref, gone=True, now=now, using=using)
            whose, named = "entity", {"label": ref.label, "entity": ref.id}
        else:
            lock_rows(
                [name for name in names if name == names[0] or registry.knows(name.label)], fresh=True, using=using
            )
            whose, named, now = "kin", dialect_of(using).entities_of(names), now or story_now(using)
        tasks = call_off(whose, named, columns=COLUMNS, reason=reason, now=now, using=using)
        run_ids = {task.run_id for task in tasks if task.run_id is not None}
        if run_ids:
            locked = lock_runs(run_ids, {task.entity_ref for task in tasks}, using=using)
            runs = {run.pk: run for run in locked.runs}
            for task in tasks:
                task.run = runs[task.run_id] if task.run_id else None
            reconcile_locked(locked.runs, locked.entities, now=now, using=using, lenient=True)
            for tell in hooks().ends:
                tell(tasks, now=now, using=using)
    return tasks
