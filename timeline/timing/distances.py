"""
Distances: how far the times of an offset are from their anchors, piece by piece of the calendar.

With these, a database can tell whether many times are as they should be, and knows nothing of time zones: within a piece the
distance is always the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple

from timeline.exceptions import DateOutOfRange
from timeline.timing.instants import EARLIEST, LATEST, as_anchor_value
from timeline.timing.offsets import Offset

YEARS: Final = 5  # Before and after the given one; of what is farther away nothing is said.
_BLOCKS: Final = (1, 10, 20, 29, 30, 31)  # Days of a month at which one begins. Clocks do not change twice in ten days.
_DAY: Final = timedelta(days=1)
_LAST: Final = timedelta(microseconds=1)


class Distance(NamedTuple):
    """From a base to the value of the anchor, and to the time that follows from it."""

    to_anchor: timedelta
    to_time: timedelta


@dataclass(frozen=True, slots=True)
class Distances:
    """
    The pieces, in their order. The first begins where the first instant of ``begins`` is, and ends where the next begins.

    Args:
        begins: Where each begins, in UTC.
        known: What the distances are there; None: not the same in all of it, or nothing is said.
    """

    begins: tuple[datetime, ...]
    known: tuple[Distance | None, ...]


@lru_cache(maxsize=256)
def distances_of_moments(offset: Offset, zone: tzinfo, year: int) -> Distances:
    """
    Tell the distances from anchors that are moments; the base is the moment itself.

    Args:
        offset: From the anchor to the time.
        zone: Whose wall clock counts calendar units.
        year: About when the moments are, if there are calendar units.
    """
    if not (offset.months or offset.days):
        known = Distance(timedelta(0), offset.exact)
        first, last = max(EARLIEST, EARLIEST - offset.exact), min(LATEST, LATEST - offset.exact)
        return Distances((first, last), (known, None))
    return _joined(_pieces_of_moments(offset, zone, year))


@lru_cache(maxsize=256)
def distances_of_days(offset: Offset, zone: tzinfo, year: int) -> Distances:
    """
    Tell the distances from anchors that are days; the base is midnight in UTC. Arguments as for ``distances_of_moments``.
    """
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
