"""What goes wrong with those whom billing calls, at set rates; the same seed makes the same faults."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

Fault = Literal["", "refused", "lost"]


@dataclass
class Faults:
    """
    Decides the fate of each call.

    Args:
        failing: Share of calls that are answered with 503, and nothing was done.
        losing: Share of calls that are done, and whose answer never arrives.
        seed: Of the chances.
    """

    failing: float = 0.0
    losing: float = 0.0
    seed: int = 1
    _calls: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def of(self, service: str) -> Fault:
        """Say what becomes of the next call of a service."""
        with self._lock:
            self._calls[service] += 1
            count = self._calls[service]
        chance = random.Random(f"{self.seed} {service} {count}").random()  # noqa: S311 (chances of a demonstration)
        if chance < self.failing:
            return "refused"
        return "lost" if chance < self.failing + self.losing else ""
