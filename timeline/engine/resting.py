"""Go to rest: what waits for an event looks once more, under the lock of its entity, whether that is still to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from timeline.store.locking import Locked
from timeline.store.waiting import met_among, open_waits
from timeline.store.writing import Write


def still_to_wait(writes: Sequence[Write], locked: Locked, *, now: datetime, using: str) -> Sequence[Write]:
    """
    Look under the lock, which whoever emits takes too, whether what is waited for is still to come: if not, look again at once.

    Nor does anything wait in a run that has ended, or for an entity that is not there.
    """
    waiting = [write for write in writes if write.rests is not None]
    if not waiting:
        return writes
    open_runs = {run.pk for run in locked.runs if run.is_open} | {None}
    met = met_among([write.rests.wait for write in waiting if write.rests is not None], using=using)
    at_once = set()
    for write, has_come in zip(waiting, met, strict=True):
        task = write.task
        is_gone = bool(task.entity_label) and task.entity_ref not in locked.entities
        if has_come or is_gone or task.run_id not in open_runs:
            at_once.add(task.id)
    return [replace(write, scheduled_at=now) if write.task.id in at_once else write for write in writes]


def begin_to_wait(writes: Sequence[Write], *, now: datetime, using: str) -> None:
    """Record what those wait for that have gone to rest in this transaction."""
    rests = [(write.task.id, write.task.attempt, write.rests) for write in writes if write.rests and write.rests.name]
    if rests:
        open_waits(rests, now=now, using=using)
