"""``every``: a repeated task, at times that all count from the first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from timeline.timing.offsets import Offset, Problem

MOST: Final = 1_000  # Rows of a series: all of them are in one run, and are read with it.
LONGEST_SERIES: Final = timedelta(days=36525)
SHORTEST: Final = timedelta(seconds=1)

_DAYS_OF_MONTH: Final = 31

LONGEST_SPREAD: Final = timedelta(days=30)


@dataclass(frozen=True)
class Repeat:
    """How a task is repeated: at most ``most`` rows (None: as long as its run is open), or until ``until`` is true."""

    interval: Offset
    most: int | None = None
    until: Any = None

    def time_of(self, number: int, first: datetime, zone: tzinfo) -> datetime:
        """When a row is due, 1 being the first, if no time is passed over; ``DateOutOfRange`` outside 1970–9000."""
        return self._apart(number - 1).apply(first, zone)

    def time_after(self, moment: datetime, first: datetime, zone: tzinfo) -> datetime:
        """The first time of the series after a moment; ``DateOutOfRange`` outside 1970–9000."""
        number = max(1, (moment - first) // self.length - 1)  # A safe lower bound: a month has at most 31 days.
        while (at := self.time_of(number, first, zone)) <= moment:
            number += 1
        return at

    def is_time(self, moment: datetime, first: datetime, zone: tzinfo) -> bool:
        """Whether a moment is one of the series' times."""
        return moment >= first and self.time_after(moment - timedelta(microseconds=1), first, zone) == moment

    @property
    def length(self) -> timedelta:
        """The interval, with months of 31 days."""
        return timedelta(days=self.interval.months * _DAYS_OF_MONTH + self.interval.days) + self.interval.exact

    def _apart(self, times: int) -> Offset:
        return Offset(self.interval.months * times, self.interval.days * times, self.interval.exact * times)

    def describe(self) -> str:
        """Say it in words, in the present language: ``every 7 days, 8 times at most, until has_replied``."""
        said = str(_("every %(interval)s") % {"interval": self.interval.describe()})
        if self.most is not None:
            said += str(
                ngettext_lazy(", %(count)d time at most", ", %(count)d times at most", "count") % {"count": self.most}
            )
        if self.until is not None:
            name = getattr(self.until, "__name__", None) or str(self.until)
            said += str(_(", until %(guard)s") % {"guard": name})
        return said


def read_repeat(interval: Offset, most: object, until: object) -> tuple[Repeat | None, tuple[Problem, ...]]:
    """Make it from the arguments of ``every``, and list what is wrong with them."""
    if problems := tuple(_problems(interval, most)):
        return None, problems
    return Repeat(interval, most if isinstance(most, int) else None, until), ()


def _problems(interval: Offset, most: object) -> Iterator[Problem]:
    length = Repeat(interval).length
    if not interval:
        yield "repeats without an interval.", "Say how often: every(days=7)."
    elif length < SHORTEST:
        yield f"repeats every {length}.", f"Give an interval of {SHORTEST.seconds} second at least."
    elif length > LONGEST_SERIES:
        yield f"repeats every {length.days} days.", "Give an interval of a hundred years at most."
    if most is None:
        return
    if type(most) is not int or not 1 <= most <= MOST:
        yield f"has most = {most!r}.", f"Use a whole number from 1 to {MOST:,}, or leave it out."
    elif length * most > LONGEST_SERIES:
        yield f"lasts {length.days * most:,} days.", "Give fewer, or a shorter interval: a hundred years at most."


def is_spread(spread: object) -> bool:
    """Whether tasks can be spread over this span: positive, 30 days at most."""
    return isinstance(spread, timedelta) and timedelta(0) < spread <= LONGEST_SPREAD


def share_of(spread: timedelta, *names: str) -> timedelta:
    """How much later a task is due, in whole milliseconds below ``spread``: always the same for the same names."""
    digest = hashlib.sha256("\x1f".join(names).encode(errors="replace")).digest()
    return timedelta(milliseconds=int.from_bytes(digest[:8]) * (spread // timedelta(milliseconds=1)) >> 64)
