"""Go to rest: a waiting task looks once more, under the lock of its entity, whether its event may still come."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from timeline.models import EntityRef
from timeline.store.awaiting import lock_awaited, refs_led_to
from timeline.store.locking import Locked
from timeline.store.queueing import Behind, have_ended
from timeline.store.waiting import TRIES_AGAIN, Rests, met_among, open_waits
from timeline.store.writing import Write


def still_to_wait(writes: Sequence[Write], locked: Locked, *, now: datetime, using: str) -> Sequence[Write]:
    """
    Look, under the lock that ``emit`` and the end of a run take too, whether the event may still come. If not, the task
    looks again at once.

    No task waits in a run that has ended, or for an entity that does not exist.
    """
    waiting = [write for write in writes if write.rests is not None]
    if not waiting:
        return writes
    ours = _locked_others(waiting, using)
    open_runs = {run.pk for run in locked.runs if run.is_open} | {None}
    over = _over(waiting, using)
    at_once = set()
    for write in waiting:
        task = write.task
        is_gone = bool(task.entity_label) and task.entity_ref not in locked.entities
        if task.id in over or is_gone or task.run_id not in open_runs:
            at_once.add(task.id)
    return [
        replace(write, scheduled_at=now) if write.task.id in at_once else _sooner(write, ours, now) for write in writes
    ]


def _locked_others(waiting: Sequence[Write], using: str) -> set[EntityRef]:
    """
    Lock the other entities whose events are waited for, if nobody else has them locked: later events then find the tasks at
    rest.
    """
    others = {write.rests.wait.of for write in waiting if isinstance(write.rests, Rests) and write.rests.wait.other}
    return lock_awaited({ref for ref in others if ref is not None}, using=using) if others else set()


def _sooner(write: Write, ours: Set[EntityRef], now: datetime) -> Write:
    """
    Let a task look again soon, if it waits for an entity that somebody else has locked, and perhaps emits an event for just
    now.
    """
    rests = write.rests
    if not isinstance(rests, Rests) or not rests.wait.other or rests.wait.of in ours or write.scheduled_at is None:
        return write
    return replace(write, scheduled_at=min(write.scheduled_at, now + TRIES_AGAIN))


def _over(waiting: Sequence[Write], using: str) -> set[UUID]:
    """
    Ids of tasks that need not wait any more, or not for that event. One statement for events, one for runs, and one for each
    way to another entity, if there are such.
    """
    events = [(write.task.id, write.rests.wait) for write in waiting if isinstance(write.rests, Rests)]
    runs = [(write.task.id, write.rests) for write in waiting if isinstance(write.rests, Behind)]
    met = met_among([wait for _id, wait in events], using=using) if events else []
    ended = have_ended([behind for _id, behind in runs], using=using) if runs else []
    paths = [(write, write.rests) for write in waiting if isinstance(write.rests, Rests) and write.rests.path]
    asked = [(write.task.entity_ref, rests.path) for write, rests in paths]
    there = refs_led_to(asked, using=using) if asked else []
    changed = [(write.task.id, of != rests.wait.of) for (write, rests), of in zip(paths, there, strict=True)]
    over = [*zip(events, met, strict=True), *zip(runs, ended, strict=True)]
    return {task_id for (task_id, _what), is_over in over if is_over} | {task_id for task_id, is_so in changed if is_so}


def begin_to_wait(writes: Sequence[Write], *, now: datetime, using: str) -> None:
    """Record the waits of tasks that have gone to rest in this transaction."""
    rests = [
        (write.task.id, write.task.attempt, write.rests)
        for write in writes
        if isinstance(write.rests, Rests) and write.rests.name
    ]
    if rests:
        open_waits(rests, now=now, using=using)
