"""``Offset``: a signed distance in time, with calendar units and exact durations kept apart."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from django.utils.functional import lazy
from django.utils.translation import gettext, ngettext_lazy

from timeline.exceptions import DateOutOfRange
from timeline.timing.instants import check_range

Problem = tuple[str, str]  # What is wrong, and the remedy.

_SECONDS = ngettext_lazy("%(count)d second", "%(count)d seconds", "count")


@dataclass(frozen=True, slots=True)
class Offset:
    """
    A signed distance in time: calendar units first, then an exact duration.

    Args:
        months: Calendar months; if the target month lacks the day, its last day counts.
        days: Calendar days on the wall clock of the zone.
        exact: Duration added last.
    """

    months: int = 0
    days: int = 0
    exact: timedelta = timedelta(0)

    def apply(self, anchor: datetime, zone: tzinfo) -> datetime:
        """
        Go that far from the anchor.

        Args:
            anchor: Aware datetime.
            zone: The zone whose wall clock counts calendar units.

        Returns:
            In UTC. If a clock change skips the wall-clock time, it is later by as much as the clock jumped; if the time comes
            twice, the first counts.

        Raises:
            DateOutOfRange: if the result is outside 1970–9000.
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
    """
    Make an offset from the units that ``after`` takes.

    Raises:
        ValueError: if a unit is negative or a calendar unit is not whole.
    """
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
    try:
        exact = delta + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    except (TypeError, ValueError, OverflowError):
        problems.append(("its hours, minutes, seconds or timedelta make no duration.", "Give numbers, or a timedelta."))
    if problems:
        return Offset(), tuple(problems)
    if exact < timedelta(0) or min(units.values()) < 0:
        problems.append(("has a negative distance.", "Count forwards with after(), backwards with before()."))
    return Offset(years * 12 + months, weeks * 7 + days, exact), tuple(problems)
