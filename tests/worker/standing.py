"""Time by which the threads of a worker are watched over: it stands still, however slow this machine is, until it is set on."""

from __future__ import annotations

from time import monotonic
from typing import Any


class StandingClock:
    """In place of ``monotonic()`` where the supervisor and its watches read it."""

    def __init__(self) -> None:
        self._at = monotonic()

    def __call__(self) -> float:
        return self._at

    def advance(self, seconds: float) -> None:
        """Let so much time pass at once."""
        self._at += seconds

    def passes(self, condition: Any) -> Any:
        """A condition to wait for, while time passes quickly."""

        def is_met() -> Any:
            self.advance(1)
            return condition()

        return is_met


standing = StandingClock()
