"""Settle: write outcomes and all that follows from them in one transaction: waits, fanned-out rows, moves, tasks, alerts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from timeline.hooks import asked_for, hooks
from timeline.lifecycle import FINAL, State, Trigger
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.reconcile import reconcile_locked
from timeline.registry import registry
from timeline.store.alerts import alert_discards
from timeline.store.isolation_level import atomic
from timeline.store.locks import Locked, lock_runs
from timeline.store.transition import Write, apply


def settle(writes: Sequence[Write], *, now: datetime, using: str, wait: bool = True) -> list[ScheduledTask]:
    """
    Write outcomes, then reconcile their runs: follow-ups get their rows, and a run without open tasks is finished.

    Entities and runs are locked before the tasks. A machine moves after the outcome is written, because that write shows
    whether the attempt is still ours. A waiting task goes to rest; if its event came meanwhile, it is due at once. Gives the
    tasks whose guard held, in the order given. Without ``wait``, locked tasks are left out.

    Raises:
        MoveNotAllowed: if a machine does not take the event of a task; then nothing is written.
    """
    for change in asked_for(hooks().releases, writes):
        writes = change(writes)
    ending = [write.task for write in writes if _locks(write)]
    if not ending and not any(_discards(write) for write in writes):
        return apply(writes, now=now, using=using, wait=wait)
    with atomic(using=using, savepoint=False):
        refs = [task.entity_ref for task in ending]
        locked = lock_runs((task.run_id for task in ending if task.run_id), refs, using=using, wait=wait)
        if not wait:
            writes = _held(writes, locked)
        runs = {run.pk: run for run in locked.runs}
        are_plain = all(write.is_plain for write in writes)
        if not are_plain:
            for decide in hooks().decisions:
                writes = decide(writes, locked, now=now, using=using)
        done = apply(writes, now=now, using=using, wait=wait)
        moved = set() if are_plain else _follow(writes, done, runs, now=now, using=using)
        concerned = [runs[run_id] for run_id in sorted({*_decided(done, using), *moved}) if run_id in runs]
        reconcile_locked(concerned, locked.entities, now=now, using=using, lenient=True)
        if discarded := [task for task in done if task.state == State.DISCARDED]:
            alert_discards(discarded, now=now, using=using)
    return done


def _follow(
    writes: Sequence[Write],
    done: Sequence[ScheduledTask],
    runs: Mapping[UUID, TimelineRun],
    *,
    now: datetime,
    using: str,
) -> set[UUID]:
    """Write waits, moves of machines and fanned-out rows, for outcomes that were written. Give the ids of the moved runs."""
    settled = {task.id for task in done}
    made = [write for write in writes if write.task.id in settled]
    changed: set[UUID] = set()
    for follow in hooks().follows:
        changed |= follow(made, runs, now=now, using=using)
    return changed


def _locks(write: Write) -> bool:
    """Whether its entity and its run are locked before it is written."""
    ends_task_of_run = write.task.run_id is not None and write.states[-1] in FINAL
    return ends_task_of_run or write.rests is not None or write.then is not None or bool(write.answers)


def _discards(write: Write) -> bool:
    """Whether its task is given up, so that people are told."""
    return write.triggers[-1:] == (Trigger.DISCARD,)


def _held(writes: Sequence[Write], locked: Locked) -> list[Write]:
    """The writes that need no locks, and those whose entities and runs are locked."""
    runs = {run.pk for run in locked.runs}
    return [
        write
        for write in writes
        if not _locks(write) or (write.task.run_id in runs | {None} and write.task.entity_ref in locked.entities)
    ]


def _decided(done: Sequence[ScheduledTask], using: str) -> list[UUID]:
    """
    Ids of runs in which a task may follow now, in order. Of a fanned-out task, only the last occurrence to end counts. No task
    follows one that is bound to a state of a machine: the machine moves, or stays in its state.
    """
    ended = [task for task in done if task.state in FINAL and not registry.is_in_state(task.task_key)]
    fanned_out = {(task.run_id, task.task_key) for task in ended if task.is_fanned_out}
    waited_for = {kind for ask in hooks().still_open for kind in ask(fanned_out, using=using)} if fanned_out else set()
    return sorted({task.run_id for task in ended if task.run_id and (task.run_id, task.task_key) not in waited_for})
