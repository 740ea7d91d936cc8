"""
``Slots``: the moments at which a wall clock says a given time, again and again. Pure rules.

If a clock change skips a fixed time, the slot is later by as much as the clock jumped; if the time comes twice, the first
counts, as in ``Offset.apply``. Schedules of every hour follow real hours: if an hour comes twice, both have their slots.
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
    One slot.

    Args:
        at: In UTC.
        day: The calendar day to which it belongs. After a clock change at midnight, its moment may be on the next day.
    """

    at: datetime
    day: date


class Days(Protocol):
    """Tells on which days there are slots; can be a key of a dict."""

    def first(self, day: date) -> date:
        """
        Find the first such day that is not before this one.

        Raises:
            OverflowError: if a date cannot hold such a day.
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
        """That day, or one of the next six."""
        return day + DAY * min((weekday - day.weekday()) % 7 for weekday in self.weekdays)


@dataclass(frozen=True, slots=True)
class DayOfMonth:
    """
    A day of each month; in a month without this day, the last.

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
        days: The days with slots.
        times: The times of each such day, in order.
        any_hour: Whether the schedule is for every hour, so that slots follow real hours.
    """

    days: Days
    times: tuple[time, ...]
    any_hour: bool = False

    def after(self, instant: datetime, zone: tzinfo) -> Slot:
        """
        Find the first slot after a moment.

        Args:
            instant: Aware; a slot at exactly this moment does not count.
            zone: The time zone of the wall clock.

        Raises:
            OverflowError: if a date cannot hold the slot.
        """
        return next(self.since(instant, zone))

    def since(self, instant: datetime, zone: tzinfo) -> Iterator[Slot]:
        """Give all slots after a moment, in order."""
        # Where the date line was moved, clocks jumped over a whole day: a slot of one day may fall on another.
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
    """
    Whether a wall clock shows this time twice. Then the second reading is later than the first; in a gap, it is earlier.
    """
    return wall.astimezone(UTC) > wall.replace(fold=0).astimezone(UTC)
