"""
The moments at which a wall clock says a given time, again and again. Pure rules. If a clock change skips a fixed time, the slot
is later by the jump; if the time comes twice, the first counts, as in ``Offset.apply``. Hourly schedules follow real hours: one
that comes twice has two slots.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple, Protocol

from django.utils.dates import WEEKDAYS
from django.utils.formats import date_format
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.timing.offsets import Problem

DAY: Final = timedelta(days=1)

LAST_SURE = 28  # Every month has days up to this number.


class Slot(NamedTuple):
    """
    One slot: its moment (UTC), and its calendar day. After a clock change at midnight, the moment may be on the next day.
    """

    at: datetime
    day: date


class Days(Protocol):
    """Tells on which days there are slots; can be a key of a dict."""

    def first(self, day: date) -> date:
        """Find the first such day from this one on. Raises ``OverflowError`` if a date cannot hold it."""


@dataclass(frozen=True, slots=True)
class EveryDay:
    """All days."""

    def first(self, day: date) -> date:
        """That day."""
        return day


@dataclass(frozen=True, slots=True)
class DaysOfWeek:
    """Some days of each week: 0 for Monday, to 6."""

    weekdays: frozenset[int]

    def first(self, day: date) -> date:
        """That day, or one of the next six."""
        return day + DAY * min((weekday - day.weekday()) % 7 for weekday in self.weekdays)


@dataclass(frozen=True, slots=True)
class DayOfMonth:
    """A day of each month, 1 to 31; in a month without this day, the last."""

    number: int

    def first(self, day: date) -> date:
        """In the same month, or the next."""
        this = self._of(day)
        return this if this >= day else self._of(day.replace(day=1) + 31 * DAY)

    def _of(self, day: date) -> date:
        return day.replace(day=min(self.number, calendar.monthrange(day.year, day.month)[1]))


@dataclass(frozen=True, slots=True)
class Slots:
    """Which times on which days, in order. ``any_hour``: the schedule is for every hour, so that slots follow real hours."""

    days: Days
    times: tuple[time, ...]
    any_hour: bool = False

    def after(self, instant: datetime, zone: tzinfo) -> Slot:
        """The first slot later than an aware moment, on this wall clock. ``OverflowError``: a date cannot hold it."""
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
    """Whether a wall clock shows this time twice. Then the second reading is the later one; in a gap, it is the earlier."""
    return wall.astimezone(UTC) > wall.replace(fold=0).astimezone(UTC)


try:
    from cronsim import CronSim, CronSimError
except ImportError:  # pragma: no cover (our tests have it)
    CronSim = None  # type: ignore[assignment, misc]


@dataclass(frozen=True, slots=True)
class DaysOfCron:
    """The days of an expression."""

    expression: str

    def first(self, day: date) -> date:
        """The first such day from this one on; for a leap day, it may be years later."""
        before = datetime.combine(day, time.min, tzinfo=UTC) - timedelta(seconds=1)
        try:
            return next(CronSim(self.expression, before)).date()
        except StopIteration:
            raise OverflowError(self.expression) from None


def slots_of(expression: object) -> tuple[Slots | None, tuple[Problem, ...]]:
    """Read an expression of five fields, and list what is wrong with it."""
    if CronSim is None:
        problem = "has cron(…), for which a package is missing."
        return None, (
            (problem, 'Install it: pip install "django-entity-timeline[cron]"; or use daily(…) and its kin.'),
        )
    if not isinstance(expression, str) or len(expression.split()) != 5:
        remedy = 'Give minute, hour, day of the month, month and day of the week: cron("0 2 * * mon").'
        return None, ((f"has cron({expression!r}).", remedy),)
    try:
        known = CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC))
        next(known)
    except (CronSimError, StopIteration) as error:
        why = "comes never" if isinstance(error, StopIteration) or _is_known(expression) else str(error).lower()
        return None, ((f"has cron({expression!r}): {why}.", "See the crontab of your system for what it takes."),)
    times = tuple(time(hour, minute) for hour, minute in product(sorted(known.hours), sorted(known.minutes)))
    any_hour = expression.split()[1].startswith("*")
    return Slots(DaysOfCron(" ".join(expression.split())), times, any_hour), ()


def _is_known(expression: str) -> bool:
    """Whether each field is valid by itself, and only the day never comes."""
    fields = expression.split()
    try:
        for position, field in enumerate(fields):
            CronSim(
                " ".join(field if place == position else "*" for place in range(5)), datetime(2024, 1, 1, tzinfo=UTC)
            )
    except CronSimError:
        return False
    return True


def in_words(slots: Slots) -> str:
    """Say in words when slots come, in the present language."""
    days, at = slots.days, f"{slots.times[0]:%H:%M}"
    if isinstance(days, DaysOfCron):
        return _("as the cron expression “%(expression)s” says") % {"expression": days.expression}
    if isinstance(days, DaysOfWeek):
        names = get_text_list([str(WEEKDAYS[number]) for number in sorted(days.weekdays)], pgettext("timeline", "and"))
        return _("every %(days)s at %(at)s") % {"days": names, "at": at}
    if isinstance(days, DayOfMonth):
        told = {"number": days.number, "at": at}
        if days.number > LAST_SURE:
            return _("on day %(number)s of every month, or the last it has, at %(at)s") % told
        return _("on day %(number)s of every month at %(at)s") % told
    if slots.any_hour:
        return _("every hour at minute %(minute)s") % {"minute": slots.times[0].minute}
    return _("every day at %(at)s") % {"at": at}


def on_the_wall(at: datetime, zone: tzinfo) -> str:
    """Write a moment for people, as the wall clock of a time zone shows it: ``25 November 2026 02:00``."""
    return date_format(at.astimezone(zone), pgettext("format of a date", "j F Y H:i"))
