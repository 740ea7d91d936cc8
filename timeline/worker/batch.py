"""Work off a batch, each task in a group of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from timeline.clocks import story_now
from timeline.operations.running import Watch, run


def run_each(task_ids: Sequence[UUID], *, watch: Watch, using: str, worker: str, token: UUID | None = None) -> int:
    """
    Run tasks one after the other, until the watch says stop.

    Args:
        task_ids: In the order they should run.
        watch: Keeps up the leases, and says when to stop.
        using: Database alias.
        worker: Who runs them, as shown on the rows.
        token: Of the claim, for tasks that came through a broker.

    Returns:
        How many were run.
    """
    clock = partial(story_now, using)
    ran = 0
    for task_id in task_ids:
        if watch.stopping():
            break
        ran += len(run(task_ids=[task_id], token=token, clock=clock, using=using, worker=worker, watch=watch))
    return ran
