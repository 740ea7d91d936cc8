"""What a worker process has once: its name on rows, its garbage collection, and the pace of its handlers."""

from __future__ import annotations

import gc
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from math import ceil
from secrets import token_hex
from time import monotonic
from typing import Final

from timeline.dispatch.worker_signs import keep_paces
from timeline.engine.groups import BUDGET, MAX_WORKER
from timeline.exceptions import UnknownTask
from timeline.operations.sets import seldom
from timeline.registry import registry

LENGTH: Final = 2  # Bytes.

LARGEST: Final = 500  # Tasks in a group.
WEIGHT: Final = 0.2  # Weight of the newest value in the moving average.
KEEP_EVERY: Final = 1.0  # Seconds.
# How long ago the last look of a group may be when the group begins to run: it is planned for BUDGET less this time.
LAG: Final = timedelta(milliseconds=14)
# How much earlier a group that has one transaction is planned to end. Handlers vary: what is left of the group when its time is
# up needs another look and another transaction.
SPARE: Final = timedelta(milliseconds=7)
SLOW: Final = timedelta(milliseconds=0.5)  # Faster handlers leave no time to do anything meanwhile.


def worker_name(name: str = "") -> str:
    """
    A name that no other process has: ``host:4711:ab12``. After a fork the random suffix is another one. In a container, a
    process has the same host name and process id each time it is started.
    """
    return _named(name, os.getpid())


@cache
def _named(name: str, pid: int) -> str:
    end = f":{token_hex(LENGTH)}"
    return (name or f"{socket.gethostname()}:{pid}")[: MAX_WORKER - len(end)] + end


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Collect garbage seldom within the block, in which a process does its work; otherwise this takes a tenth of its time."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*seldom(usual))
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


class PaceOfKinds:
    """
    Learns how long handlers take, and says how many tasks to start together: one at first, more while handlers are fast. They
    have to fit into a group's time. Threads may share a pace, and one count may then be lost.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._kept: dict[str, float] = {}
        self._next_keep = 0.0
        self._lock = threading.Lock()

    def took(self, task_key: str, count: int, seconds: float) -> None:
        """Take in how long ``count`` handlers of a kind took together."""
        each = seconds / count
        average = self._seconds.get(task_key, each)
        self._seconds[task_key] = average + WEIGHT * (each - average)
        self._counts[task_key] = self._counts.get(task_key, 0) + count

    def seconds(self, task_key: str) -> float:
        """How long one task of the kind takes, on average; 0 if none was run yet."""
        return self._seconds.get(task_key, 0.0)

    def most(self, task_key: str, budget: timedelta = BUDGET) -> int:
        """How many to start together: one at first, then as many as have been run, if they fit into this time."""
        average = self._seconds.get(task_key)
        if average is None:
            return 1
        fitting = ceil(budget.total_seconds() / max(average, 1e-6))  # The last one is entered before the time is up.
        return max(1, min(self._counts[task_key], fitting, LARGEST))

    def keep(self, *, using: str) -> None:
        """Write averages that changed by half, at most once a second. Processes that make up messages read them."""
        with self._lock:
            if monotonic() < self._next_keep:
                return
            self._next_keep = monotonic() + KEEP_EVERY
            changed = {key: now for key, now in list(self._seconds.items()) if not _alike(now, self._kept.get(key))}
            self._kept |= changed
        if changed:
            keep_paces(changed, using=using)


def _alike(now: float, before: float | None) -> bool:
    return before is not None and before / 1.5 <= now <= before * 1.5


def group_size(task_key: str, pace: PaceOfKinds, *, records_late: bool = False) -> int:
    """
    How many tasks of a kind to start together: the declared number, else what the pace allows. ``records_late``: outcomes are
    recorded on the side thread, while the next group runs.
    """
    try:
        declared = registry.task(task_key)[1]
    except UnknownTask:
        return 1
    if records_late and leaves_time(task_key, pace):
        budget = BUDGET - LAG
    elif declared.options.atomic:
        budget = BUDGET - SPARE
    else:
        budget = BUDGET
    return declared.at_once or pace.most(task_key, budget)


def leaves_time(task_key: str, pace: PaceOfKinds) -> bool:
    """Whether handlers of this kind leave time for other work: they hold no transaction, and are not very fast."""
    return registry.task(task_key)[1].is_plain and pace.seconds(task_key) >= SLOW.total_seconds()
