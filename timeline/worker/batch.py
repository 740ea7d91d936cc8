"""Work off a batch of one kind, in groups as large as its handlers are fast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from uuid import UUID

from timeline.clocks import SteadyClock
from timeline.models import ScheduledTask
from timeline.operations.running import Attempt, begin_given
from timeline.worker.ahead import Asking, WorkingOff, group_size
from timeline.worker.aside import Aside
from timeline.worker.heartbeat import Heartbeat

clock_of = cache(SteadyClock)  # One for all batches of this process.


def run_batch(
    task_ids: Sequence[UUID], *, watch: Heartbeat, using: str, worker: str, token: UUID, aside: Aside | None = None
) -> int:
    """
    Run claimed tasks of one kind, group by group, until the watch says stop.

    Args:
        task_ids: In the order they should run; all of one kind, as one message carries them.
        watch: Keeps up the leases, learns the pace, and says when to stop.
        using: Database alias.
        worker: Who runs them, as shown on the rows.
        token: Of the claim.
        aside: Where outcomes are recorded and groups begun while handlers run; left out: nowhere.

    Returns:
        How many were run.
    """
    clock = clock_of(using)
    task_key = _kind_of(task_ids[0], using) if len(task_ids) > 1 else ""
    asking = Asking()

    def groups() -> Iterator[list[Attempt]]:
        place = 0
        while place < len(task_ids) and not watch.stopping():
            group = task_ids[place : place + group_size(task_key, watch.pace, aside=aside is not None)]
            place += len(group)
            begun = begin_given(
                task_ids=group, clock=clock, using=using, token=token, worker=worker, ahead=lambda: asking.ahead
            )
            while not watch.stopping() and (attempts := next(begun, None)) is not None:
                yield attempts

    work = WorkingOff(groups=groups(), asking=asking, clock=clock, using=using, watch=watch, aside=aside)
    return work.run().ended


def _kind_of(task_id: UUID, using: str) -> str:
    return ScheduledTask.objects.using(using).filter(pk=task_id).values_list("task_key", flat=True).first() or ""
