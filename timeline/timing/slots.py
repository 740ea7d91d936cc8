"""
``Slots``: the moments at which a wall clock says a given time, again and again. Pure rules.

A fixed time that a clock change skips is as much later as the clock jumped; of one that comes twice, the first counts: as
``Offset.apply`` has it. Where any hour will do, slots follow real hours: both of the hour that comes twice have theirs.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

DAY: Final = timedelta(days=1)


class Slot(NamedTuple):
    """
    One moment.

    Args:
        at: In UTC.
        day: Of the calendar on which its time stands. After a clock change at midnight, its moment may be of the next.
    """

    at: datetime
    day: date


class Days(Protocol):
    """Says which days there are slots on; can be a key of a dict."""

    def first(self, day: date) -> date:
        """
        Find the first such day that is not before this one.

        Raises:
            OverflowError: if there is none that a date can hold.
        """


@dataclass(frozen=True, slots=True)
class EveryDay:
    """All days."""

    def first(self, day: date) -> date:
        """That day."""
        return day


@dataclass(frozen=True, slots=True)
class DaysOfWeek:
    """
    Some days of each week.

    Args:
        weekdays: 0 for Monday, to 6.
    """

    weekdays: frozenset[int]

    def first(self, day: date) -> date:
        """That day, or one of the six behind it."""
        return day + DAY * min((weekday - day.weekday()) % 7 for weekday in self.weekdays)


@dataclass(frozen=True, slots=True)
class DayOfMonth:
    """
    A day of each month; of a month that lacks it, the last.

    Args:
        number: 1 to 31.
    """

    number: int

    def first(self, day: date) -> date:
        """In the same month, or the next."""
        this = self._of(day)
        return this if this >= day else self._of(day.replace(day=1) + 31 * DAY)

    def _of(self, day: date) -> date:
        return day.replace(day=min(self.number, calendar.monthrange(day.year, day.month)[1]))


@dataclass(frozen=True, slots=True)
class Slots:
    """
    Which times on which days.

    Args:
        days: On which.
        times: Of each such day, in order.
        any_hour: Whether any hour will do, so that they follow real hours.
    """

    days: Days
    times: tuple[time, ...]
    any_hour: bool = False

    def after(self, instant: datetime, zone: tzinfo) -> Slot:
        """
        Find the first slot after a moment.

        Args:
            instant: Aware; a slot at this very moment is passed over.
            zone: Whose wall clock it is.

        Raises:
            OverflowError: if there is none that a date can hold.
        """
        return next(self.since(instant, zone))

    def since(self, instant: datetime, zone: tzinfo) -> Iterator[Slot]:
        """Give all slots after a moment, in order."""
        # Clocks have jumped over a whole day where the date line was moved: what a day has may be another's.
        instant = instant.astimezone(UTC)
        day = self.days.first(instant.astimezone(zone).date() - 2 * DAY)
        known: dict[datetime, Slot] = {}
        while True:
            known |= {slot.at: slot for slot in _on(self, day, zone) if slot.at > instant and slot.at not in known}
            day = self.days.first(day + DAY)
            sure = datetime.combine(day, time.min, tzinfo=UTC) - 2 * DAY
            for at in sorted(at for at in known if at < sure):
                yield known[at]
                instant = at
            known = {at: slot for at, slot in known.items() if at > instant}


@lru_cache(maxsize=256)
def _on(slots: Slots, day: date, zone: tzinfo) -> tuple[Slot, ...]:
    """The slots of a day, not in order."""
    folds = (0, 1) if slots.any_hour else (0,)
    walls = [datetime.combine(day, at, tzinfo=zone).replace(fold=fold) for at in slots.times for fold in folds]
    return tuple(Slot(wall.astimezone(UTC), day) for wall in walls if not wall.fold or _comes_twice(wall))


def _comes_twice(wall: datetime) -> bool:
    """Whether a wall clock says it twice. The second of two readings lies behind the first; in a gap, before it."""
    return wall.astimezone(UTC) > wall.replace(fold=0).astimezone(UTC)
