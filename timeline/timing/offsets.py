"""``Offset``: a signed distance in time, with calendar units and exact durations kept apart."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple

from django.utils.functional import lazy
from django.utils.translation import gettext, ngettext_lazy

from timeline.exceptions import DateOutOfRange, NaiveDatetime

Problem = tuple[str, str]  # What is wrong, and the remedy.

_SECONDS = ngettext_lazy("%(count)d second", "%(count)d seconds", "count")

YEARS: Final = 5  # Before and after the given one; of what is farther away nothing is said.
_BLOCKS: Final = (1, 10, 20, 29, 30, 31)  # Days of a month at which one begins. Clocks do not change twice in ten days.
_DAY: Final = timedelta(days=1)
_LAST: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Offset:
    """A signed distance: months (at most to the month's last day), days on the zone's wall clock, then an exact duration."""

    months: int = 0
    days: int = 0
    exact: timedelta = timedelta(0)

    def apply(self, anchor: datetime, zone: tzinfo) -> datetime:
        """
        Go that far from an aware anchor, in the zone whose wall clock counts calendar units. In UTC; ``DateOutOfRange``.

        A time that a clock change skips is later by as much as the clock jumped; of one that comes twice, the first counts.
        """
        try:
            there = self._on_the_calendar(anchor, zone) if self.months or self.days else anchor
            moved = there.astimezone(UTC)
            moved = moved + self.exact if self.exact else moved
        except (OverflowError, ValueError):
            raise DateOutOfRange("offset", _far_from(self, anchor)) from None
        return check_range("offset", moved)

    def _on_the_calendar(self, anchor: datetime, zone: tzinfo) -> datetime:
        wall = anchor.astimezone(zone).replace(tzinfo=None)
        if self.months:
            year, month = divmod(wall.year * 12 + wall.month - 1 + self.months, 12)
            day = min(wall.day, calendar.monthrange(year, month + 1)[1])
            wall = wall.replace(year=year, month=month + 1, day=day)
        return (wall + timedelta(days=self.days)).replace(tzinfo=zone, fold=0)

    def __neg__(self) -> Offset:
        return Offset(-self.months, -self.days, -self.exact)

    def __bool__(self) -> bool:
        return bool(self.months or self.days or self.exact)

    def describe(self) -> str:
        """Say it in words, in the present language and without its sign: ``1 month 25 days``."""
        seconds = abs(int(self.exact.total_seconds()))
        parts = [
            (abs(self.months) // 12, ngettext_lazy("%(count)d year", "%(count)d years", "count")),
            (abs(self.months) % 12, ngettext_lazy("%(count)d month", "%(count)d months", "count")),
            (abs(self.days), ngettext_lazy("%(count)d day", "%(count)d days", "count")),
            (seconds // 3600, ngettext_lazy("%(count)d hour", "%(count)d hours", "count")),
            (seconds % 3600 // 60, ngettext_lazy("%(count)d minute", "%(count)d minutes", "count")),
            (seconds % 60, _SECONDS),
        ]
        return " ".join(str(unit % {"count": count}) for count, unit in parts if count) or str(_SECONDS % {"count": 0})


def _said(offset: Offset, anchor: datetime) -> str:
    return gettext("%(offset)s from %(anchor)s") % {"offset": offset.describe(), "anchor": anchor}


_far_from = lazy(_said, str)  # In the language in which the error is shown.


def offset_of(
    delta: timedelta = timedelta(0),
    /,
    *,
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
) -> Offset:
    """The offset of the units that ``after`` takes; ``ValueError`` if one is negative, or a calendar unit not whole."""
    offset, problems = read_offset(years, months, weeks, days, delta, hours, minutes, seconds)
    if problems:
        raise ValueError(" ".join(problems[0]))
    return offset


def read_offset(
    years: int, months: int, weeks: int, days: int, delta: timedelta, hours: float, minutes: float, seconds: float
) -> tuple[Offset, tuple[Problem, ...]]:
    """Make an offset from units, and say what is wrong with them."""
    problems = []
    units = {"years": years, "months": months, "weeks": weeks, "days": days}
    for unit, count in units.items():
        if type(count) is not int:
            problems.append((f"{unit}={count!r} is not a whole number.", "Use whole calendar units, or hours=…"))
    if isinstance(delta, int | float):
        problems.append(
            (f"has the number {delta!r} without a unit.", f"Name the unit: days={delta!r}, hours={delta!r}.")
        )
        return Offset(), tuple(problems)
    try:
        exact = delta + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    except (TypeError, ValueError, OverflowError):
        problems.append(("its hours, minutes, seconds or timedelta make no duration.", "Give numbers, or a timedelta."))
    if problems:
        return Offset(), tuple(problems)
    if exact < timedelta(0) or min(units.values()) < 0:
        problems.append(("has a negative distance.", "Count forwards with after(), backwards with before()."))
    return Offset(years * 12 + months, weeks * 7 + days, exact), tuple(problems)


class Distance(NamedTuple):
    """From a base to the value of the anchor, and to the time that follows from it."""

    to_anchor: timedelta
    to_time: timedelta


@dataclass(frozen=True, slots=True)
class Distances:
    """Pieces of time, each from one of ``begins`` (UTC) to the next; ``known`` is None where distances differ within it."""

    begins: tuple[datetime, ...]
    known: tuple[Distance | None, ...]


@lru_cache(maxsize=256)
def distances_of_moments(offset: Offset, zone: tzinfo, year: int) -> Distances:
    """Distances from anchors that are moments, which are the base. ``year``: about when, if there are calendar units."""
    if not (offset.months or offset.days):
        known = Distance(timedelta(0), offset.exact)
        first, last = max(EARLIEST, EARLIEST - offset.exact), min(LATEST, LATEST - offset.exact)
        return Distances((first, last), (known, None))
    return _joined(_pieces_of_moments(offset, zone, year))


@lru_cache(maxsize=256)
def distances_of_days(offset: Offset, zone: tzinfo, year: int) -> Distances:
    """The same for anchors that are days; the base is midnight in UTC."""
    return _joined(_pieces_of_days(offset, zone, year))


def _pieces_of_moments(offset: Offset, zone: tzinfo, year: int) -> Iterator[tuple[datetime, Distance | None]]:
    def at(moment: datetime) -> tuple[Distance | None, object]:
        time_ = offset.apply(moment, zone)
        return Distance(timedelta(0), time_ - moment), (_from_utc(moment, zone), _from_utc(time_, zone))

    days = list(_days(year))
    starts = [_midnight(day, zone) for day in days]
    begins = 0
    while begins < len(days) - 1:
        ends = begins + 1
        while ends < len(days) - 1 and days[ends].day not in _BLOCKS:
            ends += 1
        if _same(at, starts[begins], starts[ends] - _LAST) is None:
            ends = begins + 1
        yield starts[begins], _same(at, starts[begins], starts[ends] - _LAST)
        begins = ends
    yield starts[-1], None


def _same(at: Callable[[datetime], tuple[Distance | None, object]], first: datetime, last: datetime) -> Distance | None:
    """The distance if it is one and the same from the first moment to the last, and no clock changes between them."""
    try:
        known = at(first)
        return known[0] if known == at(last) else None
    except DateOutOfRange:
        return None


def _pieces_of_days(offset: Offset, zone: tzinfo, year: int) -> Iterator[tuple[datetime, Distance | None]]:
    for day in _days(year):
        base = datetime.combine(day, time.min, tzinfo=UTC)
        try:
            value = as_anchor_value(day, zone, "day") or base
            yield base, Distance(value - base, offset.apply(value, zone) - base)
        except DateOutOfRange:
            yield base, None
    yield base + _DAY, None


def _joined(pieces: Iterator[tuple[datetime, Distance | None]]) -> Distances:
    begins, known = list[datetime](), list[Distance | None]()
    for begin, distance in pieces:
        if not known or known[-1] != distance:
            begins.append(begin)
            known.append(distance)
    return Distances(tuple(begins), tuple(known))


def _days(year: int) -> Iterator[date]:
    day, last = date(max(year - YEARS, EARLIEST.year + 1), 1, 1), date(min(year + YEARS, LATEST.year - 1), 12, 31)
    while day <= last:
        yield day
        day += _DAY


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time.min, tzinfo=zone).astimezone(UTC)


def _from_utc(moment: datetime, zone: tzinfo) -> timedelta | None:
    return moment.astimezone(zone).utcoffset()


EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
# The largest distances of time zones from UTC.
BEHIND: Final = timedelta(hours=12)
AHEAD: Final = timedelta(hours=14)


def as_anchor_value(value: date | datetime | None, zone: tzinfo, field_name: str) -> datetime | None:
    """The instant of a field's value, an aware datetime or the start of a date; ``NaiveDatetime`` or ``DateOutOfRange``."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return check_time(field_name, value)
    return check_time(field_name, datetime.combine(value, time.min, tzinfo=zone))


def day_of(instant: datetime) -> date | None:
    """Which day begins at this instant somewhere on earth (UTC−12 to UTC+14); None if it may be one of two."""
    at = instant.astimezone(UTC)
    first = (at - BEHIND - timedelta(microseconds=1)).date() + timedelta(days=1)
    return first if first == (at + AHEAD).date() else None


def check_time(field_name: str, value: datetime) -> datetime:
    """Take an aware datetime from 1970 to 9000, as UTC; ``NaiveDatetime`` or ``DateOutOfRange`` names the field."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise NaiveDatetime(field_name, is_datetime=isinstance(value, datetime))
    try:
        return check_range(field_name, value.astimezone(UTC))
    except OverflowError:
        raise DateOutOfRange(field_name, value) from None


def check_range(field_name: str, value: datetime) -> datetime:
    """Refuse a date outside 1970–9000 (in UTC); ``DateOutOfRange`` names the field."""
    if not EARLIEST <= value < LATEST:
        raise DateOutOfRange(field_name, value)
    return value
