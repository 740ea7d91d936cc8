"""The heartbeat: keeps up the leases of what this process runs, on a thread and a connection of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections

from timeline.conf import get_settings
from timeline.models import ScheduledTask
from timeline.operations.extending import extend_leases
from timeline.operations.running import Keeper, Watch
from timeline.worker.pace import Pace

logger = logging.getLogger("timeline")


class Heartbeat(Watch):
    """
    Extends leases every third of ``TIMELINE["LEASE"]``, within a ``with`` block.

    A beat that fails (on SQLite, while a handler's transaction holds the one writer) is tried again with the next.

    Args:
        using: Database alias.
        stopping: Says whether to enter no further handler.
        pace: Learns how long handlers take; left out: one of its own.
        keeper: Keeps outcomes that cannot be written now; left out: they are waited for.
    """

    def __init__(
        self, using: str, stopping: Callable[[], bool], pace: Pace | None = None, keeper: Keeper | None = None
    ) -> None:
        self.pace = pace or Pace()
        self._keeper = keeper
        self._using = using
        self._stopping = stopping
        self._held: set[tuple[UUID, int]] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="timeline-heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        """Begin to beat."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Beat no more; waits for a beat that is under way."""
        self._stop.set()
        self._thread.join()

    def stopping(self) -> bool:
        """Whether to enter no further handler."""
        return self._stopping()

    def entered(self, task: ScheduledTask) -> None:
        """Keep up the lease of this attempt."""
        with self._lock:
            self._held.add((task.pk, task.attempt))

    def left(self, task: ScheduledTask) -> None:
        """Let it go, and no later attempt of the task, which another thread may have begun since this one ended."""
        with self._lock:
            self._held.discard((task.pk, task.attempt))

    def took(self, task_key: str, count: int, seconds: float) -> None:
        """Learn the pace."""
        self.pace.took(task_key, count, seconds)

    def keeper(self) -> Keeper | None:
        """Who keeps outcomes that cannot be written now."""
        return self._keeper

    def make_room(self) -> bool:
        """Wait while too many of them are kept."""
        return self._keeper is not None and self._keeper.make_room(self._stopping)

    def _beat(self) -> None:
        try:
            while not self._stop.wait(get_settings().LEASE.total_seconds() / 3):
                with self._lock:
                    attempts = dict(sorted(self._held))  # Of a task that is held twice, the later attempt.
                try:
                    extend_leases(attempts, using=self._using)
                except (DatabaseError, InterfaceError) as error:
                    logger.warning("A heartbeat failed and is tried again: %s", error)
                    connections[self._using].close_if_unusable_or_obsolete()
        finally:
            connections[self._using].close()
