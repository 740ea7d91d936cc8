"""Run a message: its tasks, and then other ready tasks of the same queue."""

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
    Run claimed tasks of one kind, group by group, and then other ready tasks of their queue.

    Tasks that the worker finds by itself need not go through the broker. After two polls it begins nothing more, so that
    other messages, and other work of this worker, have their turn.

    Args:
        batch: The content of the message. If none of it can be started, nothing else is run.
        watch: Extends the leases, learns the pace, and says when to stop.
        using: Database alias.
        worker: Name of the worker, as shown on the rows.
        side_thread: Records outcomes and begins groups while handlers run; left out: this thread does everything in turn.

    Returns:
        How many tasks were run.
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
        available: Begins available tasks. It also has the data needed to begin claimed tasks.
        give_up: When to begin nothing more that did not come with the message, by ``monotonic()``.
    """

    available: Available
    give_up: float
    given: list[ClaimedBatch] = field(default_factory=list)

    def more(self, task_key: str, most: int) -> list[Attempt]:
        """Begin more of a kind that runs side by side, until the time of this message is over."""
        return self.available.more(task_key, most) if monotonic() < self.give_up else []

    def hand_on(self) -> None:
        """Leave tasks of the messages that have not been begun to others: the next poll sends them again."""
        hand_back(self.given, using=self.available.using)

    def groups(self, batch: ClaimedBatch) -> Iterator[list[Attempt]]:
        """
        Begin the tasks of the batch, then tasks that have waited long on their way to this queue, then ready tasks of the
        queue.
        """
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
        """Begin claimed tasks, in groups that are larger if their handlers are faster."""
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
            if left and not some:  # Others have these, and maybe the rest as well: ask once, not for each group.
                left = startable(left, token=batch.token, now=available.clock(), using=available.using)


def _kind_of(task_ids: list[UUID], using: str) -> str:
    """The kind of tasks that came together; for a single task it makes no difference."""
    if len(task_ids) == 1:
        return ""
    rows = ScheduledTask.objects.using(using).filter(pk=task_ids[0])
    return rows.values_list("task_key", flat=True).first() or ""
