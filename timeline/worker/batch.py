"""A message's turn: a worker works its batch off, and then goes on with what else is ready in the same queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from time import monotonic
from uuid import UUID

from timeline.clocks import SteadyClock
from timeline.conf import get_settings
from timeline.dispatch.claiming import ClaimedBatch, find_delayed, hand_back
from timeline.engine.running import Attempt, begin_given, startable
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.worker.available import Available
from timeline.worker.group_runner import Busy
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.pipeline import runner_of
from timeline.worker.side_thread import SideThread
from timeline.worker.sizing import group_size

clock_of = cache(SteadyClock)  # One for all batches of this process.


def run_batch(
    batch: ClaimedBatch, *, watch: Heartbeat, using: str, worker: str, side_thread: SideThread | None = None
) -> int:
    """
    Run claimed tasks of one kind, group by group, and then what else is ready in their queue.

    What the worker finds by itself is spared the way through the broker. After two polls it begins nothing more, so that other
    messages have their turn, and so has what else this worker does.

    Args:
        batch: What the message carried. If none of it can be started, that is all.
        watch: Keeps up the leases, learns the pace, and says when to stop.
        using: Database alias.
        worker: Who runs them, as shown on the rows.
        side_thread: Records outcomes and begins groups while handlers run; left out: this thread does it, one after the other.

    Returns:
        How many were run.
    """
    busy, clock = Busy(), clock_of(using)
    available = Available(
        busy=busy, clock=clock, using=using, watch=watch, worker=worker, records_late=side_thread is not None
    )
    turn = _Turn(available, give_up=monotonic() + get_settings().overdue_after.total_seconds())
    runner = runner_of(
        side_thread,
        groups=turn.groups(batch),
        busy=busy,
        clock=clock,
        using=using,
        watch=watch,
        more=turn.more,
        hand_on=turn.hand_on,
    )
    return runner.run().ended


@dataclass(frozen=True)
class _Turn:
    """
    Begins one group after the other.

    Args:
        available: Begins what is available; knows all that is needed to begin what was claimed.
        give_up: When to begin nothing more that did not come with the message, by ``monotonic()``.
    """

    available: Available
    give_up: float
    given: list[ClaimedBatch] = field(default_factory=list)

    def more(self, task_key: str, most: int) -> list[Attempt]:
        """Begin more of a kind that runs side by side, as long as it is this message's turn."""
        return self.available.more(task_key, most) if monotonic() < self.give_up else []

    def hand_on(self) -> None:
        """Let others have what came with the messages and has not been begun: the next poll sends it again."""
        hand_back(self.given, using=self.available.using)

    def groups(self, batch: ClaimedBatch) -> Iterator[list[Attempt]]:
        """Begin the tasks of the batch, what else has waited for long on its way to this queue, and what is ready there."""
        queue = None
        for attempts in self._given(batch):
            queue = attempts[0].task.queue if attempts else queue
            yield attempts
        if queue is None:
            return
        if late := find_delayed(registry.task_keys(queue), using=self.available.using):
            yield from self._given(late)
        some = True
        while some and monotonic() < self.give_up:
            some = False
            for attempts in self.available.groups(queue):
                some = True
                yield attempts

    def _given(self, batch: ClaimedBatch) -> Iterator[list[Attempt]]:
        """Begin tasks that were claimed, in groups as large as their handlers are fast."""
        available = self.available
        self.given.append(batch)
        task_key = batch.task_key or _kind_of(batch.task_ids, available.using)
        left = batch.task_ids
        while left and not available.watch.stopping():
            size = group_size(task_key, available.watch.pace, records_late=available.records_late)
            group, left = left[:size], left[size:]
            some = False
            begun = begin_given(
                task_ids=group,
                clock=available.clock,
                using=available.using,
                token=batch.token,
                worker=available.worker,
                others_run=lambda: available.busy.others_run,
            )
            while not available.watch.stopping() and (attempts := next(begun, None)) is not None:
                some = True
                yield attempts
            if left and not some:  # Others have it, and maybe the rest as well: ask once, not for each group.
                left = startable(left, token=batch.token, now=available.clock(), using=available.using)


def _kind_of(task_ids: list[UUID], using: str) -> str:
    """The kind of tasks that came together; of a single one it makes no difference."""
    if len(task_ids) == 1:
        return ""
    rows = ScheduledTask.objects.using(using).filter(pk=task_ids[0])
    return rows.values_list("task_key", flat=True).first() or ""
