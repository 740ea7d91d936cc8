"""Outcomes that cannot be written now: kept with their leases and tried again, while their worker goes on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from django.db import connections

from timeline.engine.groups import Keeper
from timeline.models import ScheduledTask
from timeline.store.database_errors import drop
from timeline.worker.heartbeat import Heartbeat

logger = logging.getLogger("timeline")

# When so many are kept, the process enters no further plain handler, because a crash repeats all of them.
MAX_KEPT: Final = 100
SOONEST: Final = 0.05  # Seconds until the first try; each later try waits twice as long as the one before it,
LONGEST: Final = 5.0  # but no longer than this.
LAST_TRIES: Final = 5.0  # Seconds for which a process that is told to stop still tries.


@dataclass(slots=True)
class _Kept:
    """One outcome; seconds before the next try, and when that is by ``monotonic()``."""

    task: ScheduledTask
    again: Callable[[], bool]
    delay: float = SOONEST
    due_at: float = field(default_factory=lambda: monotonic() + SOONEST)

    def put_off(self) -> None:
        """Wait longer than the last time."""
        self.delay = min(max(2 * self.delay, SOONEST), LONGEST)
        self.due_at = monotonic() + self.delay


class OutcomeKeeper(Keeper):
    """
    Tries, on a thread and a connection of its own, until each outcome is written or not ours to write any more. Thread,
    connection and heartbeat exist only while an outcome is kept. Safe in threads.
    """

    def __init__(self, using: str) -> None:
        self._using = using
        self._kept: list[_Kept] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._leases = self._heartbeat()
        self._give_up_at: float | None = None

    def keep(self, task: ScheduledTask, again: Callable[[], bool]) -> None:
        """Keep an outcome, and extend its lease."""
        with self._changed:
            if self._thread is None:
                self._leases = self._heartbeat()
                self._thread = threading.Thread(target=self._work, name="timeline-outcome_keeper", daemon=True)
                self._thread.start()
            self._leases.entered(task)
            self._kept.append(_Kept(task, again))
            self._changed.notify_all()

    def is_full(self) -> bool:
        """Whether too many are kept to take more."""
        return len(self._kept) >= MAX_KEPT

    def make_room(self, stopping: Callable[[], bool]) -> bool:
        """Wait while too many are kept, or until it is time to stop; tell whether it had to wait."""
        if not self.is_full():
            return False
        logger.warning(
            "Outcomes that cannot be written yet: %d. No plain handler is entered until some are.", len(self._kept)
        )
        with self._changed:
            while self.is_full() and not stopping():
                self._changed.wait(SOONEST)
        return True

    def close(self) -> None:
        """Try for a few seconds more, and log the outcomes that are left: their leases run out, and their tasks run again."""
        with self._changed:
            thread, self._give_up_at = self._thread, monotonic() + LAST_TRIES
            for kept in self._kept:
                kept.delay = kept.due_at = 0.0
            self._changed.notify_all()
        if thread is not None:
            thread.join(2 * LAST_TRIES)
        if left := [kept.task.pk for kept in self._kept]:
            ids = ", ".join(map(str, left))
            logger.error("Outcomes lost with this process: %d. Their tasks will run again: %s", len(left), ids)

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(self._using, stopping=bool)

    def _work(self) -> None:
        try:
            with self._leases as leases:
                while (kept := self._next()) is not None:
                    self._try(kept, leases)
        finally:
            with self._changed:
                if self._thread is threading.current_thread():
                    self._thread = None
            connections[self._using].close()

    def _try(self, kept: _Kept, leases: Heartbeat) -> None:
        """Try one outcome. An error of our own code does not stop the others, and does not lose this outcome at once."""
        over = False
        try:
            over = kept.again()
        except Exception:
            logger.exception("The outcome of task %s is tried again, after an error", kept.task.pk)
        with self._changed:
            self._put_away(kept, over=over, leases=leases)

    def _next(self) -> _Kept | None:
        """Wait until it is time to try an outcome again; None: none is left, or there is no time left."""
        with self._changed:
            while self._kept and not self._is_time_up():
                kept = min(self._kept, key=lambda one: one.due_at)
                if (wait := kept.due_at - monotonic()) <= 0:
                    return kept
                self._changed.wait(wait if self._give_up_at is None else min(wait, SOONEST))
            self._thread = None
            return None

    def _is_time_up(self) -> bool:
        return self._give_up_at is not None and monotonic() >= self._give_up_at

    def _put_away(self, kept: _Kept, *, over: bool, leases: Heartbeat) -> None:
        if not over:
            kept.put_off()
            drop(self._using)  # Whatever is wrong with the connection, the next try gets a new one.
            return
        self._kept.remove(kept)
        leases.left(kept.task)
        self._changed.notify_all()
