"""Deadlines that stand: whom a machine asks puts off no timer of the state that the run stays in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from timeline.definition import IGNORE, STAY, Definition
from timeline.features.machines.choices import targets_of
from timeline.features.machines.sentences import DEADLINE_STANDS
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.operations.move import move_locked
from timeline.operations.record_event import lock_subject_now, starters_of, subjects_of
from timeline.registry import registry
from timeline.store.locks import lock_tasks
from timeline.store.transactions import atomic


@contextmanager
def deadlines_kept(event: str, ref: EntityRef, *, now: datetime, using: str) -> Iterator[None]:
    """
    Emit the event in the block. Where a machine answers it with ``STAY``, timers of the state are then due as they were before;
    tasks with handlers begin anew. Entity and runs are locked from the first on, in the caller's transaction or a new one.
    """
    with atomic(using=using):
        staying = _staying(event, ref, now, using)
        timers = _timers_of(staying)
        due = {(task.run_id, task.task_key): task.scheduled_at for task in _open(timers, using)}
        states = {run.pk: run.state for run, _definition in staying}
        yield
        places = {
            task.pk: at
            for task in _open(timers, using)
            if task.run is not None and task.run.state == states[task.run.pk]  # By conditions, it may have left it.
            if (at := due.get((task.run_id, task.task_key))) is not None and at != task.scheduled_at
        }
        if places:
            found = lock_tasks(list(places), using=using)
            reason = DEADLINE_STANDS()
            move_locked([(task, places[task.pk]) for task in found], reason=reason, now=now, using=using)


def _staying(event: str, ref: EntityRef, now: datetime, using: str) -> list[tuple[TimelineRun, Definition]]:
    """Lock the entity as ``emit`` does, then its runs of machines; give those that the event makes enter their state again."""
    subject = subjects_of([ref], started=starters_of(event), using=using)[ref]
    lock_subject_now(subject, read=False, now=now, using=using)
    runs = TimelineRun.objects.using(using).open().for_entity(ref).exclude(state="").locked()
    known = [(run, registry.about(run.timeline, run.entity_label)) for run in runs]
    return [
        (run, one)
        for run, one in known
        if one and one.machine and STAY in targets_of(one.machine.takes(run.state).get(event, IGNORE))
    ]


def _timers_of(staying: Iterable[tuple[TimelineRun, Definition]]) -> dict[UUID, set[str]]:
    """Run → keys of its timers."""
    return {run.pk: {known.task_key(name) for name in known.timers.tasks} for run, known in staying}


def _open(timers: dict[UUID, set[str]], using: str) -> list[ScheduledTask]:
    if not any(timers.values()):
        return []
    found = ScheduledTask.objects.using(using).open().filter(run__in=list(timers)).select_related("run")
    return [task for task in found if task.run_id is not None and task.task_key in timers[task.run_id]]
