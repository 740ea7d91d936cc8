"""``Rate``: how many attempts of a kind, or of a key, may begin within a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

from timeline.definition.names import key_with
from timeline.timing.keywords import known_arguments

if TYPE_CHECKING:
    from timeline.definition.handlers import Task


MAX_RATE: Final = 1_000
PERIODS: Final = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_TEXT: Final = re.compile(r"([1-9][0-9]{0,3})/([smhd])", re.ASCII)


class Allowance(NamedTuple):
    """At most so many starts in any time of this length."""

    most: int
    period: timedelta


@known_arguments
@dataclass(frozen=True)
class Rate:
    """
    How many attempts may begin within a time. Every attempt counts, also one that is tried again.

    Args:
        text: How many, and in what: ``"100/h"``. 1 to 1,000; in a second (s), minute (m), hour (h) or day (d).
        key: Tasks of any kind that name the same key share the rate, such as that of an API outside. Left out: tasks of this
            kind share it.
        by: A field of the entity: each of its values has the rate for itself.
    """

    text: str
    key: str = ""
    by: str = ""

    @property
    def read(self) -> Allowance | None:
        """What the text says; None: it is no rate."""
        found = _TEXT.fullmatch(self.text) if isinstance(self.text, str) else None
        most = int(found[1]) if found is not None else 0
        return Allowance(most, PERIODS[found[2]]) if found is not None and most <= MAX_RATE else None

    def name_of(self, task_key: str) -> str:
        """What people call it: without the value of a field, which may be personal."""
        return self.key or task_key

    def key_of(self, task_key: str, value: object = None) -> str:
        """What a task shares the rate with: 100 characters at most. ``value`` is that of the field that ``by`` names."""
        return key_with(self.name_of(task_key), value, by=self.by)


class RateOptions(TypedDict, total=False):
    """
    Args:
        rate: How many attempts may begin within a time: ``"100/h"``; or a ``Rate``, which also says what shares it. None: any
            number.
    """

    rate: str | Rate | None


def rate_of(declared: Task[Any, ..., Any]) -> Rate | None:
    """How many attempts of a task may begin within a time; None: any number."""
    rate: str | Rate | None = declared.options.rate
    return Rate(rate) if isinstance(rate, str) else rate
