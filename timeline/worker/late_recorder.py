"""Records outcomes on the side thread, while the next handlers run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from typing import TypeVar
from uuid import UUID

from timeline.engine.running import BUDGET, Attempt, Keeper, Watch
from timeline.models import ScheduledTask
from timeline.worker.side_thread import SideThread

Answer = TypeVar("Answer")


class LateRecorder(Watch):
    """
    Has outcomes recorded on the side thread while the next handlers run. Their leases are extended until then.

    Args:
        watch: The worker's watch.
        side_thread: Records them.
    """

    def __init__(self, watch: Watch, side_thread: SideThread) -> None:
        self._watch = watch
        self._side_thread = side_thread
        self._recording: Future[list[ScheduledTask]] | None = None
        self._kept: set[tuple[UUID, int]] = set()  # Ids of tasks, and numbers of attempts.
        self._spent = 0.0  # Seconds in handlers whose outcomes are not yet being recorded.
        self._behind = 0.0  # Seconds in handlers whose outcomes are being recorded.
        self.ran = 0  # How many handlers of the group have run.
        self.over = threading.Event()  # Set when all of them have.
        self._lock = threading.Lock()

    def begin(self, over: threading.Event) -> threading.Event:
        """Begin a group. Returns ``over``, which is set when all its handlers have run."""
        self.ran, self.over = 0, over
        return over

    def stopping(self) -> bool:
        """Whether to enter no further handler."""
        return self._watch.stopping()

    def entered(self, task: ScheduledTask) -> None:
        """Extend the lease of this attempt."""
        self._watch.entered(task)

    def left(self, task: ScheduledTask) -> None:
        """Stop extending it, unless its outcome is still being recorded."""
        with self._lock:
            if (task.pk, task.attempt) not in self._kept:
                self._watch.left(task)

    def hold(self, attempts: Iterable[Attempt]) -> None:
        """These attempts will be entered later."""
        self._watch.hold(attempts)

    def remaining(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """The attempts that nobody has given back since."""
        return self._watch.remaining(attempts)

    def looking(self) -> AbstractContextManager[object]:
        """A last look is under way."""
        return self._watch.looking()

    def abandon(self) -> None:
        """Let another thread give back tasks that were begun and not entered."""
        self._watch.abandon()

    def take(self, attempt: Attempt) -> bool:
        """Take an attempt to enter its handler."""
        return self._watch.take(attempt)

    def call(self, attempts: Sequence[Attempt], act: Callable[[], Answer], *, undone: Sequence[Attempt] = ()) -> Answer:
        """Call a handler that may take only so long."""
        return self._watch.call(attempts, act, undone=undone)

    def under_way(self, attempt: Attempt, cancel: Callable[[], object]) -> None:
        """A coroutine that may take only so long is under way."""
        self._watch.under_way(attempt, cancel)

    def is_in_time(self, attempt: Attempt) -> bool:
        """Whether it came back in time."""
        return self._watch.is_in_time(attempt)

    def more(self, task_key: str, most: int) -> list[Attempt]:
        """Begin more of a kind."""
        return self._watch.more(task_key, most)

    def lend(self, record: Callable[[], None] | None) -> None:
        """Let another thread record finished outcomes, if this thread is held up."""
        self._watch.lend(record)

    def lend_transaction(self, entered: Sequence[Attempt], break_off: Callable[[], object] | None) -> None:
        """Let another thread break off a transaction, if one of its handlers holds up this thread."""
        self._watch.lend_transaction(entered, break_off)

    def took(self, task_key: str, count: int, seconds: float) -> None:
        """Learn the pace."""
        self.ran += count
        self._spent += seconds
        self._watch.took(task_key, count, seconds)

    def keep_up(self) -> bool:
        """
        Wait, if the handlers of unrecorded outcomes took as long as a group may take: a crash repeats all of them. Tell whether
        it had to wait.
        """
        waits = self._recording is not None and not self._recording.done()
        if not waits or self._behind + self._spent < BUDGET.total_seconds():
            return False
        self.catch_up()
        return True

    def keeper(self) -> Keeper | None:
        """The keeper of outcomes that cannot be written now."""
        return self._watch.keeper()

    def make_room(self) -> bool:
        """Wait while it keeps too many."""
        return self._watch.make_room()

    def catch_up(self) -> None:
        """Wait for outcomes that are being recorded; ``settle`` gives the result."""
        if self._recording is not None:
            wait([self._recording])

    def settle(self, tasks: Sequence[ScheduledTask], record: Callable[[], list[ScheduledTask]]) -> list[ScheduledTask]:
        """Have these outcomes recorded on the side thread. Wait for the outcomes before them, and give the tasks of those."""
        self.over.set()
        with self._lock:
            self._kept |= {(task.pk, task.attempt) for task in tasks}
        self._behind, self._spent = self._spent, 0.0
        before, self._recording = self._recording, self._side_thread.submit(self._record, tasks, record)
        return before.result() if before is not None else []

    def settled(self) -> list[ScheduledTask]:
        """Wait for outcomes that are being recorded, and give their tasks."""
        last, self._recording = self._recording, None
        return last.result() if last is not None else []

    def _record(self, tasks: Sequence[ScheduledTask], record: Callable[[], list[ScheduledTask]]) -> list[ScheduledTask]:
        try:
            return record()
        finally:
            with self._lock:
                self._kept -= {(task.pk, task.attempt) for task in tasks}
                for task in tasks:
                    self._watch.left(task)
