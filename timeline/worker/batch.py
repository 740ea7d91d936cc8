"""Run a message: its tasks, and then other ready tasks of the same queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from random import sample
from time import monotonic
from typing import Any
from uuid import UUID

from timeline.clocks import SteadyClock
from timeline.conf import get_settings
from timeline.definition.check_timelines import MAX_BULK
from timeline.dispatch.claim import ClaimedBatch, find_delayed, hand_back, shares
from timeline.engine.groups import MAX_WORKER, Attempt, begin_given, begin_ready, startable
from timeline.hooks import hooks
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.store.task_key_stats import ready_kinds
from timeline.worker.group_runner import Busy
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.pipeline import runner_of
from timeline.worker.process import group_size
from timeline.worker.threads import SideThread

Begin = Callable[..., list[Attempt]]

clock_of = cache(SteadyClock)  # One for all batches of this process.


@dataclass(frozen=True, kw_only=True)
class Available:
    """Begins available tasks that come without a broker. ``records_late``: outcomes are recorded while the next group runs."""

    busy: Busy
    clock: Callable[[], datetime]
    using: str
    watch: Heartbeat
    worker: str
    records_late: bool

    def more(self, task_key: str, most: int) -> list[Attempt]:
        """
        Begin at most so many more of a kind while some of it still run. None that was tried before, because the running ones
        would pay for its failure. None while another kind is ready.
        """
        of_queue = registry.task_keys(registry.task(task_key)[1].options.queue)
        ready = ready_kinds(of_queue, now=self.clock(), using=self.using)
        if set(ready) != {task_key}:
            return []
        return begin_ready(
            task_key=task_key,
            priority=ready[task_key].priority,
            since=ready[task_key].place,
            parts=ready[task_key].parts,
            most=most,
            clock=self.clock,
            using=self.using,
            worker=self.worker,
            retried=False,
        )

    def groups(self, queue: str | None = None) -> Iterator[list[Attempt]]:
        """Begin one group of each of the most urgent kinds; tasks tried before only when nothing else runs. None: any queue."""
        for begin in (*self._ready(queue), *self._from_sources(queue)):
            if self.watch.stopping():
                return
            attempts = begin(retried=not self.busy.others_run)
            if self.busy.others_run and not attempts:
                yield []
                attempts = begin()
            if attempts:
                yield attempts

    def claimed(self, batch: ClaimedBatch) -> Iterator[list[Attempt]]:
        """Begin the tasks of a message, in groups that are larger if their handlers are faster."""
        task_key = batch.task_key or _kind_of(batch.task_ids, self.using)
        left = batch.task_ids
        while left and not self.watch.stopping():
            size = self._size(task_key)
            group, left = left[:size], left[size:]
            some = False
            begun = begin_given(
                task_ids=group, token=batch.token, others_run=lambda: self.busy.others_run, **self._told
            )
            while not self.watch.stopping() and (attempts := next(begun, None)) is not None:
                some = True
                yield attempts
            if left and not some:  # Others have these, and maybe the rest as well: ask once, not for each group.
                left = startable(left, token=batch.token, now=self.clock(), using=self.using)

    def _ready(self, queue: str | None) -> Iterator[Begin]:
        """The most urgent of the kinds that can be had by kind and priority alone."""
        ready = ready_kinds(registry.task_keys(queue), now=self.clock(), using=self.using)
        urgency = {task_key: first.priority for task_key, first in ready.items()}
        for share in shares(urgency, dict.fromkeys(ready, ""), {}, most=MAX_BULK):
            yield partial(
                begin_ready,
                task_key=share.task_key,
                priority=share.priority,
                since=ready[share.task_key].place,
                parts=ready[share.task_key].parts,
                most=min(share.size, self._size(share.task_key)),
                **self._told,
            )

    def _from_sources(self, queue: str | None) -> Iterator[Begin]:
        """Kinds that features give, in random order; no statement if there are none."""
        ready = [found for source in hooks().sources for found in source.groups(queue, using=self.using)]
        for task_key, begin in sample(ready, len(ready)):
            yield partial(self._begin, begin, self._size(task_key))

    def _begin(self, begin: Begin, most: int, *, retried: bool = True) -> list[Attempt]:
        return begin(most=most, worker=self.worker[:MAX_WORKER], retried=retried, now=self.clock(), using=self.using)

    def _size(self, task_key: str) -> int:
        return group_size(task_key, self.watch.pace, records_late=self.records_late)

    @property
    def _told(self) -> dict[str, Any]:
        return {"clock": self.clock, "using": self.using, "worker": self.worker}


def run_batch(
    batch: ClaimedBatch, *, watch: Heartbeat, using: str, worker: str, side_thread: SideThread | None = None
) -> int:
    """
    Run claimed tasks of one kind, group by group, then other ready tasks of their queue; give how many were run.

    If none of the message can be started, nothing else is run. After two polls it begins nothing more, so that other messages
    have their turn. Without a side thread, this thread also records outcomes and begins groups, in turn.
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
    """Begins one group after the other; after ``give_up``, by ``monotonic()``, nothing that did not come with the message."""

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
        """Begin the tasks of the batch, then delayed ones of its queue, then ready ones."""
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
        self.given.append(batch)
        return self.available.claimed(batch)


def _kind_of(task_ids: list[UUID], using: str) -> str:
    """The kind of tasks that came together; for a single task it makes no difference."""
    if len(task_ids) == 1:
        return ""
    rows = ScheduledTask.objects.using(using).filter(pk=task_ids[0])
    return rows.values_list("task_key", flat=True).first() or ""
