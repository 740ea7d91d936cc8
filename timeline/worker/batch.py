"""Work off a batch of one kind, in groups as large as its handlers are fast."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from uuid import UUID

from timeline.clocks import SteadyClock
from timeline.exceptions import UnknownTask
from timeline.models import ScheduledTask
from timeline.operations.running import run
from timeline.registry import registry
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.pace import Pace

clock_of = cache(SteadyClock)  # One for all batches of this process.


def group_size(task_key: str, pace: Pace) -> int:
    """How many tasks of a kind to start together: what its declaration says, or what its pace allows."""
    try:
        declared = registry.task(task_key)[1]
    except UnknownTask:
        return 1
    return declared.at_once or pace.most(task_key)


def run_batch(task_ids: Sequence[UUID], *, watch: Heartbeat, using: str, worker: str, token: UUID) -> int:
    """
    Run claimed tasks of one kind, group by group, until the watch says stop.

    Args:
        task_ids: In the order they should run; all of one kind, as one message carries them.
        watch: Keeps up the leases, learns the pace, and says when to stop.
        using: Database alias.
        worker: Who runs them, as shown on the rows.
        token: Of the claim.

    Returns:
        How many were run.
    """
    clock = clock_of(using)
    task_key = _kind_of(task_ids[0], using) if len(task_ids) > 1 else ""
    ran = place = 0
    while place < len(task_ids) and not watch.stopping():
        group = task_ids[place : place + group_size(task_key, watch.pace)]
        ran += len(run(task_ids=group, token=token, clock=clock, using=using, worker=worker, watch=watch))
        place += len(group)
    return ran


def _kind_of(task_id: UUID, using: str) -> str:
    return ScheduledTask.objects.using(using).filter(pk=task_id).values_list("task_key", flat=True).first() or ""
