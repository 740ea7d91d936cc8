"""Begins available tasks in groups: the most urgent kinds first, and equally urgent kinds in equal parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import sample
from typing import Any

from timeline.definition.checking import MAX_BULK
from timeline.engine.running import Attempt, begin_ready, begin_with_place
from timeline.planning import shares
from timeline.registry import registry
from timeline.store.kinds import ready_kinds
from timeline.store.limited_kinds import limited_kinds
from timeline.worker.group_runner import Busy
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.sizing import group_size

Begin = Callable[..., list[Attempt]]


@dataclass(frozen=True, kw_only=True)
class Available:
    """
    Begins available tasks that come without a broker.

    Args:
        busy: Whether handlers run while a group is begun.
        clock: Tells story time.
        using: Database alias.
        watch: The worker's watch.
        worker: Name of the worker, as shown on the rows.
        records_late: Whether outcomes are recorded on the side thread, while the next group runs.
    """

    busy: Busy
    clock: Callable[[], datetime]
    using: str
    watch: Heartbeat
    worker: str
    records_late: bool

    def more(self, task_key: str, most: int) -> list[Attempt]:
        """
        Begin more of a kind while some of it still run: no task that was tried before, because the running ones would pay
        for its failure, and none while another kind is ready, because that kind has its turn when they end.

        Args:
            task_key: The kind.
            most: At most so many.
        """
        ready = ready_kinds(registry.task_keys(registry.task(task_key)[1].options.queue), using=self.using)
        if set(ready) != {task_key}:
            return []
        return begin_ready(
            task_key=task_key,
            priority=ready[task_key].priority,
            since=ready[task_key].due_at,
            on_hold=ready[task_key].on_hold,
            most=most,
            clock=self.clock,
            using=self.using,
            worker=self.worker,
            retried=False,
        )

    def groups(self, queue: str | None = None) -> Iterator[list[Attempt]]:
        """
        Begin one group of each of the most urgent kinds; tasks that were tried before only when nothing else runs.

        Args:
            queue: Queue of the kinds, as declared; None: any queue.
        """
        for begin in (*self._ready(queue), *self._limited(queue)):
            if self.watch.stopping():
                return
            attempts = begin(retried=not self.busy.others_run)
            if self.busy.others_run and not attempts:
                yield []
                attempts = begin()
            if attempts:
                yield attempts

    def _ready(self, queue: str | None) -> Iterator[Begin]:
        """The most urgent of the kinds without a limit."""
        ready = ready_kinds(registry.task_keys(queue), using=self.using)
        urgency = {task_key: first.priority for task_key, first in ready.items()}
        for share in shares(urgency, dict.fromkeys(ready, ""), {}, most=MAX_BULK):
            yield partial(
                begin_ready,
                task_key=share.task_key,
                priority=share.priority,
                since=ready[share.task_key].due_at,
                on_hold=ready[share.task_key].on_hold,
                most=min(share.size, self._size(share.task_key)),
                **self._told,
            )

    def _limited(self, queue: str | None) -> Iterator[Begin]:
        """Kinds that have a limit; no statement if there are none."""
        ready = limited_kinds(registry.limited(queue), using=self.using)
        for kind in sample(ready, len(ready)):
            yield partial(begin_with_place, kind=kind, most=self._size(kind.task_key), **self._told)

    def _size(self, task_key: str) -> int:
        return group_size(task_key, self.watch.pace, records_late=self.records_late)

    @property
    def _told(self) -> dict[str, Any]:
        return {"clock": self.clock, "using": self.using, "worker": self.worker}
