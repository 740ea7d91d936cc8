"""How a failed task is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """
    Exponential backoff with jitter, capped.

    Args:
        max_attempts: Budget of handler errors; the last of them discards the task. None: ``TIMELINE["MAX_ATTEMPTS"]``.
        base: Delay after the first failure.
        factor: Each further delay is this many times the one before.
        cap: No delay is longer, jitter included.
        jitter: Each delay is lengthened at random by up to this share of it, 0 to 1, so that what failed together
            does not come back together.
    """

    max_attempts: int | None = None
    base: timedelta = timedelta(seconds=15)
    factor: float = 2.0
    cap: timedelta = timedelta(hours=6)
    jitter: float = 0.2

    def delay(self, failures: int) -> timedelta:
        """
        Say how long to wait before the next attempt.

        Args:
            failures: Handler errors so far, this one included; at least 1.
        """
        plain = self.base.total_seconds() * min(self.factor ** min(failures - 1, 64), 1e9)
        longer = plain * (1 + self.jitter * random.random())  # noqa: S311 (spreads load; guards no secret)
        return min(timedelta(seconds=min(longer, self.cap.total_seconds())), self.cap)

    def problems(self) -> list[tuple[str, str]]:
        """List what is wrong with it, as (problem, remedy)."""
        found = []
        if self.max_attempts is not None and (type(self.max_attempts) is not int or self.max_attempts < 1):
            found.append((f"retry has max_attempts={self.max_attempts!r}.", "Give a whole number, at least 1."))
        if self.base <= timedelta(0) or self.cap < self.base:
            found.append(("retry has no positive base, or a cap below it.", "Give 0 < base <= cap."))
        if self.factor < 1 or not 0 <= self.jitter <= 1:
            found.append(("retry has a factor below 1 or a jitter outside 0 to 1.", "Give factor >= 1, jitter 0 to 1."))
        return found
