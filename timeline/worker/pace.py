"""How fast this process runs each kind, and so how many tasks to start together."""

from __future__ import annotations

import threading
from datetime import timedelta
from math import ceil
from time import monotonic
from typing import Final

from timeline.dispatch.pacing import keep_paces
from timeline.engine.running import BUDGET

LARGEST: Final = 500  # Tasks in a group.
WEIGHT: Final = 0.2  # Weight of the newest value in the moving average.
KEEP_EVERY: Final = 1.0  # Seconds.


class Pace:
    """
    Learns how long handlers take, and says how many tasks to start together: one at first, and more as long as handlers are
    fast, up to the number that fits into a group's time. Threads may share a pace; if two count at the same moment, one count
    may be lost.
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
