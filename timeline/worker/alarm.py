"""The alarm: how a process that polls sleeps and is woken."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Alarm:
    """Wakes one sleeper. Safe in threads and, unlike an Event, in a signal handler of the sleeper's own thread."""

    def __init__(self) -> None:
        self._rung: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Wake the sleeper; if it is awake, it does not fall asleep next time. Ringing twice has the same effect as once."""
        if self._rung.empty():
            self._rung.put(None)

    def sleep(self, seconds: float) -> bool:
        """Sleep for at most so long; tell whether it rang."""
        try:
            self._rung.get(timeout=max(seconds, 0.0))
        except Empty:
            return False
        return True
