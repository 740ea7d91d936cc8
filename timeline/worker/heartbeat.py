"""The heartbeat: extends the leases of this process's tasks, on a thread and a connection of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import TracebackType
from typing import Final
from uuid import UUID

from django.db import connections

from timeline.conf import get_settings
from timeline.dispatch.worker_signs import extend_leases, give_sign
from timeline.engine.groups import Keeper, Watch
from timeline.models import ScheduledTask
from timeline.store.database_errors import drop
from timeline.worker.process import PaceOfKinds

NEVER: Final = float("-inf")

_given: dict[tuple[str, str], float] = {}  # Worker and database → last sign. A forked process has another name.

logger = logging.getLogger("timeline")
AGAIN: Final = 1.0  # Seconds after a beat that failed.


def seconds_left(worker: str, *, using: str) -> float:
    """How long there is until the next sign of this worker; 0 if it is time."""
    key = worker, using
    next_at = _given.get(key, NEVER) + get_settings().sign_every.total_seconds()
    return max(next_at - monotonic(), 0.0)


def keep_giving(worker: str, *, using: str) -> None:
    """Give a sign if it is time, for the name that rows have; empty: nobody looks for its signs."""
    if not worker or seconds_left(worker, using=using):
        return
    before, _given[worker, using] = _given.get((worker, using), NEVER), monotonic()
    try:
        give_sign(worker, using=using)
    except BaseException:
        _given[worker, using] = before
        raise


class Heartbeat(Watch):
    """
    Extends leases every third of ``TIMELINE["LEASE"]`` and gives signs of its worker, within a ``with`` block.

    If that fails (on SQLite, while a handler's transaction holds the one writer), it is tried again after a second. A lease
    whose row somebody has locked is tried again with the next sign. Without a name, signs are given only for workers whose
    names are on rows held here. ``killed`` tells whether this process is being ended from outside.
    """

    def __init__(
        self,
        using: str,
        stopping: Callable[[], bool],
        pace: PaceOfKinds | None = None,
        keeper: Keeper | None = None,
        worker: str = "",
        killed: Callable[[], bool] = bool,
    ) -> None:
        self.pace = pace or PaceOfKinds()
        self._keeper = keeper
        self._using = using
        self._stopping = stopping
        self._killed = killed
        self._worker = worker
        self._at_work = 0  # How many threads are at work.
        self._next_extension = 0.0
        self._held: dict[tuple[UUID, int], str] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="timeline-heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        """Begin to beat."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop beating; a running beat is waited for."""
        self._stop.set()
        self._thread.join()

    def stopping(self) -> bool:
        """Whether to enter no further handler."""
        return self._stopping()

    def is_killed(self) -> bool:
        """Whether this process is being ended from outside."""
        return self._killed()

    def entered(self, *tasks: ScheduledTask) -> None:
        """Extend the leases of these attempts."""
        with self._lock:
            for task in tasks:
                self._held[task.id, task.attempt] = task.worker

    def left(self, *tasks: ScheduledTask) -> None:
        """Stop extending them; later attempts of the tasks, which other threads may have begun since, are not affected."""
        with self._lock:
            for task in tasks:
                self._held.pop((task.id, task.attempt), None)

    def took(self, task_key: str, count: int, seconds: float) -> None:
        """Learn the pace."""
        self.pace.took(task_key, count, seconds)

    def keeper(self) -> Keeper | None:
        """The keeper of outcomes that cannot be written now."""
        return self._keeper

    def make_room(self) -> bool:
        """Wait while it keeps too many."""
        return self._keeper is not None and self._keeper.make_room(self._stopping)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Within the block each beat gives a sign of the worker, because it may have begun tasks that it does not hold yet."""
        with self._lock:
            self._at_work += 1
        try:
            yield
        finally:
            with self._lock:
                self._at_work -= 1

    def give_sign(self) -> None:
        """Give a sign of the worker, if it is time; ``DatabaseError`` if the database is not reached."""
        keep_giving(self._worker, using=self._using)

    def _give_signs(self) -> None:
        for worker in self._workers():
            keep_giving(worker, using=self._using)

    def _workers(self) -> set[str]:
        """This worker if it is at work, and those whose rows are held: an outcome may be kept longer than its message."""
        with self._lock:
            return {self._worker if self._at_work else "", *self._held.values()} - {""}

    def _beat(self) -> None:
        self._next_extension = monotonic() + get_settings().LEASE.total_seconds() / 3
        pause = self._pause()
        try:
            while not self._stop.wait(pause):
                try:
                    self._give_signs()
                    self._extend()
                    pause = self._pause()
                except Exception as error:  # noqa: BLE001 (whatever it is: without beats, what lives is given up)
                    logger.warning("A heartbeat failed and is tried again: %s", error)
                    drop(self._using)
                    pause = min(AGAIN, get_settings().LEASE.total_seconds() / 3)
        finally:
            connections[self._using].close()

    def _pause(self) -> float:
        """How many seconds there are until the next beat."""
        left = [seconds_left(worker, using=self._using) for worker in self._workers()]
        return min([max(self._next_extension - monotonic(), 0.0), get_settings().sign_every.total_seconds(), *left])

    def _extend(self) -> None:
        """Extend the leases if it is time; sooner than usual, if a row was skipped."""
        if monotonic() < self._next_extension:
            return
        with self._lock:
            attempts = dict(sorted(self._held))  # If a task is held twice, its later attempt counts.
        settings = get_settings()
        usual = settings.LEASE.total_seconds() / 3
        passed_over = extend_leases(attempts, using=self._using) < len(attempts)
        self._next_extension = monotonic() + (min(usual, settings.sign_every.total_seconds()) if passed_over else usual)
