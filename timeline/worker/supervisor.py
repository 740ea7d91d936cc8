"""The supervisor: a thread that gives back tasks that wait behind a handler that does not come back."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Final

from django.db import connections

from timeline.worker.thread_watch import ThreadWatch

logger = logging.getLogger("timeline")

TICK: Final = 0.2  # Seconds between two looks.

REST: Final = 1.0  # Seconds until the next look at a thread, after the database failed.


class Supervisor:
    """
    Looks several times a second at each thread of this process that runs handlers.

    It starts with the first of these threads, and has a connection only while it has something to write.
    """

    def __init__(self) -> None:
        self._watches: set[ThreadWatch] = set()
        self._owner = 0

    @contextmanager
    def watching(self, watch: ThreadWatch) -> Iterator[None]:
        """Watch a thread within a ``with`` block."""
        if self._owner != os.getpid():  # Threads do not survive a fork, and its old watches mean nothing.
            self._watches, self._owner = set(), os.getpid()
            threading.Thread(target=self._watch, name="timeline-supervisor", daemon=True).start()
        self._watches.add(watch)
        try:
            yield
        except BaseException:
            watch.abandon()
            raise
        finally:
            watch.close()
            if watch.is_over(monotonic()):
                self._watches.discard(watch)

    def _watch(self) -> None:
        while True:
            sleep(TICK)
            for watch in list(self._watches):
                self._see_to(watch)
                if watch.is_over(monotonic()):
                    self._watches.discard(watch)

    def _see_to(self, watch: ThreadWatch) -> None:
        try:
            acted = True
            try:
                acted = watch.see_to(monotonic())
            finally:
                if acted:
                    connections[watch.using].close()
        except Exception as error:  # noqa: BLE001 (whatever is wrong at one of them, the others are watched over)
            logger.warning("What is held up is not given back yet: %s", error)
            watch.rest(monotonic() + REST)


supervisor = Supervisor()
