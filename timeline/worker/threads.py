"""Threads that run ready tasks, and the side thread that works for one of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from time import monotonic
from types import TracebackType
from typing import Any, Final, TypeVar

from django.db import DatabaseError, InterfaceError, connections

from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.store.database_errors import drop

logger = logging.getLogger("timeline")

TICK: Final = 0.2  # Seconds after which a stopping worker notices that the time of a handler is up.
PATIENCE: Final = 2.0  # Seconds for which a stopping worker waits for handlers that did not come back in time.

Answer = TypeVar("Answer")


class RunnerThreads:
    """
    Threads that are called when tasks are ready, within a ``with`` block. Each has a connection of its own. ``stop`` is called
    when a thread dies of an error that another try would not solve; it is raised at the end of the block.
    """

    def __init__(
        self,
        count: int,
        run: Callable[[], int],
        *,
        using: str,
        stopping: Callable[[], bool],
        stop: Callable[[], None],
    ) -> None:
        self._run = run
        self._using = using
        self._stopping = stopping
        self._stop = stop
        self._error: BaseException | None = None
        self._called = threading.Condition()
        self._calls = 0
        self._ended = False
        self._count = count
        self._late: set[threading.Thread] = set()  # Threads whose handlers have not come back in time.
        self._disowned: set[threading.Thread] = set()  # Late threads that have been replaced.
        self._threads = [self._thread(number) for number in range(count)]

    def __enter__(self) -> RunnerThreads:
        """Begin to wait for calls."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Take no more calls, and wait for running handlers; for handlers whose time is up, wait only a moment."""
        self._ended = True
        self.call()
        for thread in [*self._threads]:
            while thread.is_alive() and thread not in self._late:
                thread.join(TICK)
        give_up = monotonic() + PATIENCE
        for thread in [*self._late]:
            thread.join(max(give_up - monotonic(), 0))
        if self._error is not None:
            raise self._error

    def call(self) -> None:
        """Say that tasks are ready. Threads at work find them anyway."""
        with self._called:
            self._calls += 1
            self._called.notify_all()

    def replace(self, thread: threading.Thread) -> bool:
        """
        Replace a thread whose handler does not come back by another; if it does, the old thread ends. Tell whether it was. At
        most as many threads are left to themselves as there are threads.
        """
        self._late.add(thread)
        with self._called:
            if self._ended:
                logger.warning("%s does not come back, and this worker stops without it.", thread.name)
                return False
            if thread not in self._threads or len(self._alive()) >= self._count:
                logger.error("%s does not come back, and none is put in its place; restart this worker.", thread.name)
                return False
            self._disowned.add(thread)
            self._threads.append(self._thread(len(self._threads)))
            self._threads[-1].start()
        logger.warning(
            "%s does not come back; %s is in its place. Threads left to themselves: %d.",
            thread.name,
            self._threads[-1].name,
            len(self._alive()),
        )
        return True

    def _alive(self) -> list[threading.Thread]:
        """Threads that were replaced and have not come back."""
        return [thread for thread in self._disowned if thread.is_alive()]

    def _thread(self, number: int) -> threading.Thread:
        """Make a thread. Its process does not wait for its end, which may never come; ``__exit__`` does, for a while."""
        return threading.Thread(target=self._work, name=f"timeline-runner-{number}", daemon=True)

    def _is_over(self) -> bool:
        return self._ended or threading.current_thread() in self._disowned

    def _work(self) -> None:
        heard = 0
        try:
            while not self._is_over():
                with self._called:
                    while self._calls == heard:
                        self._called.wait()
                    heard = self._calls
                while not (self._is_over() or self._stopping()) and self._try():
                    pass
        except BaseException as died:  # noqa: BLE001 (a worker without threads must not go on as if it had them)
            self._error = died
            self._stop()
        finally:
            connections[self._using].close()

    def _try(self) -> int:
        try:
            return self._run_in_time()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The database failed; trying again: %s", error)
            drop(self._using)
            with self._called:
                self._called.wait(get_settings().POLL_INTERVAL.total_seconds())
            return 1

    def _run_in_time(self) -> int:
        try:
            return self._run()
        finally:
            if not self._is_over():
                self._late.discard(threading.current_thread())


def can_use_side_thread(using: str) -> bool:
    """Whether a second connection can write meanwhile: SQLite allows only one writer."""
    return not dialect_of(using).has_one_writer


class SideThread:
    """A thread that does one thing after the other, on a connection of its own."""

    def __init__(self, using: str) -> None:
        self.using = using
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="timeline-side")

    def __enter__(self) -> SideThread:
        """Start; it runs until the end of the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Finish the submitted calls, and close the connection."""
        self.submit(self._close)
        self._executor.shutdown()

    def submit(self, act: Callable[..., Answer], *given: Any) -> Future[Answer]:
        """Have something done, in the present language and time zone."""
        return self._executor.submit(copy_context().run, self._do, act, *given)

    def _do(self, act: Callable[..., Answer], *given: Any) -> Answer:
        try:
            return act(*given)
        except (DatabaseError, InterfaceError):
            self._close()  # In case the connection is broken: the next call gets a new one.
            raise

    def _close(self) -> None:
        drop(self.using)
