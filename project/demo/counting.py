"""Counting the figures of charts. A worker does it each ten seconds, in which days may pass in a demo."""

from __future__ import annotations

from time import monotonic
from typing import Final

from django.db import DEFAULT_DB_ALIAS

from timeline.features.maintenance.figures import roll_up

EVERY: Final = 0.5  # Seconds.


class Counter:
    """Counts when it is called, if it is time for that."""

    def __init__(self) -> None:
        self._next = monotonic()

    def look(self) -> None:
        """Count what has come since the last time."""
        if monotonic() >= self._next:
            self._next = monotonic() + EVERY
            for _ in range(2):  # The first call counts what the one before has marked, and marks what has come since.
                roll_up(using=DEFAULT_DB_ALIAS)
