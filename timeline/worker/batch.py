"""A message's turn: a worker works its batch off, and then goes on with what else is ready in the same queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from time import monotonic
from uuid import UUID

from timeline.clocks import SteadyClock
from timeline.conf import get_settings
from timeline.dispatch.claiming import Batch, hand_back, overlooked
from timeline.engine.running import Attempt, begin_given, startable
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.worker.ahead import Asking, WorkingOff, group_size
from timeline.worker.aside import Aside
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.ready import Ready

clock_of = cache(SteadyClock)  # One for all batches of this process.


def run_batch(batch: Batch, *, watch: Heartbeat, using: str, worker: str, aside: Aside | None = None) -> int:
    """
    Run claimed tasks of one kind, group by group, and then what else is ready in their queue.

    What the worker finds by itself is spared the way through the broker. After two polls it begins nothing more, so that other
    messages have their turn, and so has what else this worker does.

    Args:
        batch: What the message carried. If none of it can be started, that is all.
        watch: Keeps up the leases, learns the pace, and says when to stop.
        using: Database alias.
        worker: Who runs them, as shown on the rows.
        aside: Where outcomes are recorded and groups begun while handlers run; left out: nowhere.

    Returns:
        How many were run.
    """
    asking, clock = Asking(), clock_of(using)
    ready = Ready(asking=asking, clock=clock, using=using, watch=watch, worker=worker, aside=aside is not None)
    turn = _Turn(ready, give_up=monotonic() + get_settings().overdue_after.total_seconds())
    work = WorkingOff(
        groups=turn.groups(batch),
        asking=asking,
        clock=clock,
        using=using,
        watch=watch,
        aside=aside,
        more=turn.more,
        hand_on=turn.hand_on,
    )
    return work.run().ended


@dataclass(frozen=True)
class _Turn:
    """
    Begins one group after the other.

    Args:
        ready: Begins what is available; knows all that is needed to begin what was claimed.
        give_up: When to begin nothing more that did not come with the message, by ``monotonic()``.
    """

    ready: Ready
    give_up: float
    given: list[Batch] = field(default_factory=list)

    def more(self, task_key: str, most: int) -> list[Attempt]:
        """Begin more of a kind that runs side by side, as long as it is this message's turn."""
        return self.ready.more(task_key, most) if monotonic() < self.give_up else []

    def hand_on(self) -> None:
        """Let others have what came with the messages and has not been begun: the next poll sends it again."""
        hand_back(self.given, using=self.ready.using)

    def groups(self, batch: Batch) -> Iterator[list[Attempt]]:
        """Begin the tasks of the batch, what else has waited for long on its way to this queue, and what is ready there."""
        queue = None
        for attempts in self._given(batch):
            queue = attempts[0].task.queue if attempts else queue
            yield attempts
        if queue is None:
            return
        if late := overlooked(registry.task_keys(queue), using=self.ready.using):
            yield from self._given(late)
        some = True
        while some and monotonic() < self.give_up:
            some = False
            for attempts in self.ready.groups(queue):
                some = True
                yield attempts

    def _given(self, batch: Batch) -> Iterator[list[Attempt]]:
        """Begin tasks that were claimed, in groups as large as their handlers are fast."""
        ready = self.ready
        self.given.append(batch)
        task_key = batch.task_key or _kind_of(batch.task_ids, ready.using)
        left = batch.task_ids
        while left and not ready.watch.stopping():
            size = group_size(task_key, ready.watch.pace, aside=ready.aside)
            group, left = left[:size], left[size:]
            some = False
            begun = begin_given(
                task_ids=group,
                clock=ready.clock,
                using=ready.using,
                token=batch.token,
                worker=ready.worker,
                ahead=lambda: ready.asking.ahead,
            )
            while not ready.watch.stopping() and (attempts := next(begun, None)) is not None:
                some = True
                yield attempts
            if left and not some:  # Others have it, and maybe the rest as well: ask once, not for each group.
                left = startable(left, token=batch.token, now=ready.clock(), using=ready.using)


def _kind_of(task_ids: list[UUID], using: str) -> str:
    """The kind of tasks that came together; of a single one it makes no difference."""
    if len(task_ids) == 1:
        return ""
    rows = ScheduledTask.objects.using(using).filter(pk=task_ids[0])
    return rows.values_list("task_key", flat=True).first() or ""
