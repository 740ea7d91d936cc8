"""The alarm: what a process that polls sleeps by."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Alarm:
    """Wakes one sleeper. Safe in threads and, unlike an Event, in a signal handler of the sleeper's own thread."""

    def __init__(self) -> None:
        self._rung: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Wake the sleeper; one who is awake does not fall asleep next time. Ringing twice is ringing once."""
        if self._rung.empty():
            self._rung.put(None)

    def sleep(self, seconds: float) -> bool:
        """Sleep so long at most; say whether it rang."""
        try:
            self._rung.get(timeout=max(seconds, 0.0))
        except Empty:
            return False
        return True
