"""How a failed task is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from timeline.timing.keywords import known_arguments

_LONGEST: Final = timedelta(days=3653)


@known_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """
    Exponential backoff with jitter, capped.

    Args:
        max_attempts: Budget of handler errors; the last of them discards the task. None: ``TIMELINE["MAX_ATTEMPTS"]``.
        base: Delay after the first failure.
        factor: Each further delay is this many times the one before; 1 to 1000.
        cap: No delay is longer, jitter included; ten years at most.
        jitter: Each delay is lengthened at random by up to this share of it, 0 to 1, so that what failed together
            does not come back together.
    """

    max_attempts: int | None = None
    base: timedelta = timedelta(seconds=15)
    factor: float = 2.0
    cap: timedelta = timedelta(hours=6)
    jitter: float = 0.2

    def delay(self, failures: int) -> timedelta:
        """How long to wait before the next attempt, after so many handler errors, at least 1."""
        return self.wait(failures, random.random())  # noqa: S311 (spreads load; guards no secret)

    def wait(self, failures: int, share: float) -> timedelta:
        """The same with a known ``share`` of the jitter: 0 to 1."""
        plain = self.base.total_seconds() * min(self.factor ** min(failures - 1, 64), 1e9)
        longer = plain * (1 + self.jitter * share)
        return min(timedelta(seconds=min(longer, self.cap.total_seconds())), self.cap)

    def problems(self) -> list[tuple[str, str]]:
        """List what is wrong with it, as (problem, remedy)."""
        found = []
        if self.max_attempts is not None and (type(self.max_attempts) is not int or not 1 <= self.max_attempts < 2**31):
            found.append(
                (f"retry has max_attempts={self.max_attempts!r}.", "Give a whole number from 1 to 2,147,483,647.")
            )
        delays = {"base": self.base, "cap": self.cap}
        if wrong := [name for name, delay in delays.items() if not isinstance(delay, timedelta)]:
            given = " and ".join(f"{name}={delays[name]!r}" for name in wrong)
            found.append((f"retry has {given}, which is no timedelta.", "Give one: base=timedelta(seconds=15)."))
        elif not timedelta(0) < self.base <= self.cap <= _LONGEST:
            remedy = "Give timedeltas, 0 < base <= cap <= ten years."
            found.append(("retry has no positive base, or a cap below it or too long.", remedy))
        numbers = isinstance(self.factor, int | float) and isinstance(self.jitter, int | float)
        if not numbers or not (1 <= self.factor <= 1000 and 0 <= self.jitter <= 1):
            remedy = "Give factor 1 to 1000, jitter 0 to 1."
            found.append(("retry has a factor outside 1 to 1000 or a jitter outside 0 to 1.", remedy))
        return found
