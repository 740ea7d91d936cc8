"""Meetings: one act is stopped after each statement that takes locks, while another one does all that it can."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

from django.db import connection, connections

PATIENCE: Final = 120  # Seconds.
_LOCKING: Final = ("INSERT ", "UPDATE ", "DELETE ")  # Also ``FOR NO KEY UPDATE``.

Act = Callable[[], object]


class _Side(threading.Thread):
    """An act, on a connection of its own; stopped after so many statements that take locks, until it is let go; -1: never."""

    def __init__(self, act: Act, stop_after: int) -> None:
        super().__init__(daemon=True)
        self.act, self.left = act, stop_after
        self.stopped, self.go, self.over = threading.Event(), threading.Event(), threading.Event()
        self.process = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                self.process = cursor.fetchone()[0]
            with connection.execute_wrapper(self._hold):
                self.act()
        except Exception as error:  # noqa: BLE001 (whatever it is: the test says which)
            self.error = error
        finally:
            self.over.set()
            connections.close_all()

    def _hold(self, execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        try:
            return execute(sql, parameters, many, context)
        finally:
            self.left -= any(word in sql for word in _LOCKING)
            if self.left == 0 and not self.stopped.is_set():
                self.stopped.set()
                self.go.wait(PATIENCE)

    def is_waiting(self) -> bool:
        """Whether it waits for a lock of the other one."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [self.process])
            return bool(cursor.fetchone()[0])


def meetings(make: Callable[[], tuple[Act, Act]], *, every: int = 1) -> Iterator[tuple[int, list[Exception]]]:
    """
    Let two acts meet: the first stops after its first statement that takes locks, then after its second and so on.

    Args:
        make: Makes what both act on, and gives the acts.
        every: After each so-manieth statement alone, from the first.

    Yields:
        After which statement the first stopped, and what they raised.
    """
    for at in count(1, every):
        one, other = make()
        first, second = _Side(one, at), _Side(other, -1)
        first.start()
        while not (first.stopped.wait(0.002) or first.over.is_set()):
            pass
        was_stopped = first.stopped.is_set()
        if was_stopped:
            second.start()
            give_up = time.monotonic() + PATIENCE
            while not (second.over.wait(0.002) or (second.process and second.is_waiting())):
                assert time.monotonic() < give_up, "it neither ends nor waits for a lock"
        first.go.set()
        for side in (first, second) if was_stopped else (first,):
            side.join(PATIENCE)
            assert not side.is_alive(), "two wait for each other"
        yield at, [side.error for side in (first, second) if side.error is not None]
        if not was_stopped:
            return
