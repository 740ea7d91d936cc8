"""The retry policy of a job: how often it is tried, and how long it waits before each further attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from random import random
from typing import Any, Final

from timeline.ojs.errors import Unprocessable
from timeline.ojs.values import an_array, an_object, duration, flag, text, whole

MAX_ATTEMPTS: Final = 10_000
MAX_DELAY: Final = timedelta(days=365)
STRATEGIES: Final = ("none", "constant", "linear", "exponential", "polynomial")
EXHAUSTIONS: Final = ("discard", "dead_letter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the specification calls a retry policy, with its defaults."""

    max_attempts: int = 3
    initial: timedelta = timedelta(seconds=1)
    coefficient: float = 2.0
    longest: timedelta = timedelta(minutes=5)
    jitter: bool = True
    strategy: str = "exponential"
    final: tuple[str, ...] = ()
    on_exhaustion: str = "discard"

    def delay(self, failures: int) -> timedelta:
        """How long to wait after so many failures, at least one."""
        try:
            found = self._raw(failures)
        except OverflowError:
            found = self.longest
        found = min(found, self.longest)
        return min(found * (0.5 + random()), self.longest) if self.jitter else found  # noqa: S311 (spreads load)

    def _raw(self, failures: int) -> timedelta:
        if self.strategy == "none":
            return timedelta(0)
        if self.strategy == "linear":
            return self.initial * failures
        if self.strategy == "polynomial":
            return self.initial * float(failures**self.coefficient)
        return self.initial * (1.0 if self.strategy == "constant" else float(self.coefficient ** (failures - 1)))

    def ends(self, name: str) -> bool:
        """Whether an error of this name is not tried again: named in full, or by ``Auth.*``."""
        return any(
            name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1])) for pattern in self.final
        )


def policy_of(given: Mapping[str, Any] | None, field: str = "retry") -> Policy:
    """
    Read a policy; what is not given has its default.

    Raises:
        Refused: naming the field.
    """
    if given is None:
        return Policy()
    found = an_object(field, given)
    read = {
        name: ask(f"{field}.{word}", found[word])
        for word, (name, ask) in _FIELDS.items()
        if found.get(word) is not None
    }
    return Policy(**read)


def _attempts(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_ATTEMPTS:
        raise Unprocessable(field, f"has to be a whole number from 0 to {MAX_ATTEMPTS}.")
    return value


def _coefficient(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 1000:
        raise Unprocessable(field, "has to be a number from 1.0 to 1000.")
    return float(value)


def _among(*known: str) -> Any:
    def ask(field: str, value: object) -> str:
        if value not in known:
            raise Unprocessable(field, f"has to be one of {', '.join(known)}.")
        return str(value)

    return ask


def _in_ms(field: str, value: object) -> timedelta:
    return timedelta(milliseconds=whole(field, value, 0, int(MAX_DELAY / timedelta(milliseconds=1))))


def _names(field: str, value: object) -> tuple[str, ...]:
    return tuple(text(f"{field}[{place}]", name, 200) for place, name in enumerate(an_array(field, value)))


_FIELDS: Final[dict[str, tuple[str, Any]]] = {
    "max_attempts": ("max_attempts", _attempts),
    "initial_interval_ms": ("initial", _in_ms),
    "initial_interval": ("initial", duration),
    "backoff_coefficient": ("coefficient", _coefficient),
    "max_interval_ms": ("longest", _in_ms),
    "max_interval": ("longest", duration),
    "jitter": ("jitter", flag),
    "backoff_strategy": ("strategy", _among(*STRATEGIES)),
    "non_retryable_errors": ("final", _names),
    "on_exhaustion": ("on_exhaustion", _among(*EXHAUSTIONS)),
}
