"""
``window``: the hours in which a task may be due. Pure rules.

Of a time that the clock shows twice, an opening starts at the first and ends at the second. One that a clock change skips is
later by as much as the clock jumped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from django.db import Error
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.timing.keywords import known_keywords
from timeline.timing.offsets import Problem

IsHoliday = Callable[[date], bool]

DAY: Final = timedelta(days=1)
AHEAD: Final = 400  # An opening has to come within so many days.
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Outside = Literal["next", "previous", "cancel"]
Span = tuple[time, time]


def holidays_of(given: Any) -> tuple[IsHoliday | None, Problem | None]:
    """Which days are holidays (None: no day), of a country, a country and part, dates or a function; and what is wrong."""
    if given is None or callable(given):
        return given, None
    named = (given,) if isinstance(given, str) else given
    if isinstance(named, tuple) and len(named) in (1, 2) and all(isinstance(part, str) for part in named):
        return _of_country(*named)
    if isinstance(given, Collection) and all(_is_day(day) for day in given):
        return frozenset(given).__contains__, None
    remedy = 'Give the code of a country, "DE", or of a part of it, ("DE", "BY"); dates; or a function of a date.'
    return None, (f"has a window with holidays = {given!r:.80}.", remedy)


def _is_day(day: object) -> bool:
    return isinstance(day, date) and not isinstance(day, datetime)


def _of_country(country: str, part: str | None = None) -> tuple[IsHoliday | None, Problem | None]:
    try:
        from holidays import country_holidays  # noqa: PLC0415 (it takes long, and few need it)
    except ImportError:  # pragma: no cover (our tests have it)
        problem = "has a window with holidays of a country, for which a package is missing."
        return None, (problem, 'Install it: pip install "django-entity-timeline[holidays]"; or give dates.')
    try:
        known = country_holidays(country, subdiv=part)
    except NotImplementedError:
        named = country if part is None else (country, part)
        return None, (f"has a window with holidays = {named!r}.", "The package holidays knows no such country or part.")

    @lru_cache(maxsize=4096)
    def is_holiday(day: date) -> bool:
        return day in known

    return is_holiday, None


@dataclass(frozen=True, slots=True)
class Window:
    """
    Hours of some days. Made by ``window``.

    Args:
        spans: Start and end on a wall clock; if the end is not later than the start, it is on the next day.
        weekdays: Days on which spans begin; 0 for Monday, to 6.
        zone: The zone of the wall clock; None: the zone in which its timeline counts days.
        said: The window as it was written, for people.
    """

    spans: tuple[Span, ...]
    weekdays: frozenset[int]
    is_holiday: Callable[[date], bool] | None
    outside: Outside
    zone: tzinfo | None
    said: str
    problems: tuple[Problem, ...] = ()

    def is_open(self, moment: datetime, zone: tzinfo) -> bool:
        """Whether it is open at this moment; at the end of a span it is not."""
        return self.next_open(moment, zone) == moment

    def next_open(self, moment: datetime, zone: tzinfo) -> datetime:
        """The first moment from this one on at which it is open, or 400 days later if there is none."""
        zone = self.zone or zone
        first = moment.astimezone(zone).date() - DAY  # The opening that began yesterday may still be open.
        for day in (first + DAY * number for number in range(AHEAD)):
            for begins, ends in self._openings(day, zone):
                if moment < ends:
                    return max(begins, moment)
        return moment + AHEAD * DAY

    def last_begun(self, moment: datetime, zone: tzinfo) -> datetime | None:
        """Find the start of the last opening that starts before this moment; None: there is none within 400 days."""
        zone = self.zone or zone
        last = moment.astimezone(zone).date()
        for day in (last - DAY * number for number in range(AHEAD)):
            for begins, _ends in reversed(self._openings(day, zone)):
                if begins < moment:
                    return begins
        return None

    def shifted(self, moment: datetime, zone: tzinfo, now: datetime) -> datetime:
        """When a task is due that has this time. A result before ``now`` is the next opening instead."""
        if self.outside == "cancel" or self.is_open(moment, zone):
            return moment
        if self.outside == "previous":
            before = self.last_begun(moment, zone)
            if before is not None and before >= now:
                return before
        return self.next_open(moment, zone)

    def spread_over(self, opens: datetime, share: timedelta, spread: timedelta, zone: tzinfo) -> datetime:
        """When a task is due that has a share of a spread: both count only while it is open, from ``opens`` on, when it is."""
        spans = self._open_within(opens, opens + spread, self.zone or zone)
        left = share * (sum((ends - begins for begins, ends in spans), timedelta(0)) / spread)
        for begins, ends in spans:
            if left < ends - begins:
                return begins + left
            left -= ends - begins
        return opens

    def _open_within(self, first: datetime, last: datetime, zone: tzinfo) -> list[tuple[datetime, datetime]]:
        day, found = first.astimezone(zone).date() - DAY, []
        while day <= last.astimezone(zone).date():
            for opens, closes in self._openings(day, zone):
                begins, ends = max(opens, first), min(closes, last)
                if begins < ends:
                    found.append((begins, ends))
                    first = ends  # Openings may overlap.
            day += DAY
        return found

    def _openings(self, day: date, zone: tzinfo) -> list[tuple[datetime, datetime]]:
        if day.weekday() not in self.weekdays or self._is_free(day):
            return []
        return _openings(self.spans, day, zone)

    def _is_free(self, day: date) -> bool:
        if self.is_holiday is None:
            return False
        try:
            return bool(self.is_holiday(day))
        except Error:  # The database's error may be temporary.
            raise
        except Exception as error:
            problem, remedy = _("nobody can say whether %(day)s is a holiday: %(error)r."), _("Mend its function.")
            raise InvalidInput("window", problem, remedy, day=day, error=error) from error


@lru_cache(maxsize=4096)
def _openings(spans: tuple[Span, ...], day: date, zone: tzinfo) -> list[tuple[datetime, datetime]]:
    found = []
    for begins, ends in spans:
        last_day = day if ends > begins else day + DAY
        beginning = datetime.combine(day, begins, tzinfo=zone).astimezone(UTC)
        ending = datetime.combine(last_day, ends, tzinfo=zone)
        last = max(ending.astimezone(UTC), ending.replace(fold=1).astimezone(UTC))
        found += [(beginning, last)] if beginning < last else []
    return sorted(found)


@known_keywords
def window(
    *spans: str,
    days: str = "mon-sun",
    holidays: str | tuple[str, str] | Collection[date] | Callable[[date], bool] | None = None,
    outside: Outside = "next",
    zone: str | None = None,
) -> Window:
    """
    Hours in which a task may be due: ``window("09:00-17:00", days="mon-fri", holidays=("DE", "BY"))``.

    Args:
        spans: Each with start and end, on a wall clock, to the minute; ``"22:00-06:00"`` goes over midnight, and
            ``"00:00-24:00"`` is the whole day.
        days: Days on which spans begin: ``"mon-fri"``, ``"mon,wed"``, ``"sat-mon"``.
        holidays: Days on which no span begins: dates, or a function of a date. Or the code of a country, or of a country and
            its part, as in the package ``holidays`` (extra ``holidays``).
        outside: What happens to a time outside. ``"next"``: due at the next opening. ``"previous"``: due at the last opening
            before, or at the next if that has passed. ``"cancel"``: the task is cancelled when its time comes.
        zone: Name of the time zone of the hours; left out: that of the entity, or the site's.

    Returns:
        The window; mistakes in it are reported when a timeline declares it.
    """
    problems: list[Problem] = []
    read = [_span(span, problems) for span in spans]
    if not spans:
        problems.append(("has a window without hours.", 'Give some: window("09:00-17:00").'))
    if outside not in ("next", "previous", "cancel"):
        problems.append((f"has a window with outside = {outside!r}.", 'Use "next", "previous" or "cancel".'))
    is_holiday, problem = holidays_of(holidays)
    problems += [problem] if problem else []
    weekdays = _weekdays(days, problems)
    told = ", ".join(str(span) for span in spans)
    made = Window(
        spans=tuple(span for span in read if span is not None),
        weekdays=weekdays,
        is_holiday=is_holiday,
        outside=outside,
        zone=_zone(zone, problems),
        said=told if len(weekdays) == len(WEEKDAYS) else f"{days} {told}",
        problems=tuple(problems),
    )
    if not problems and not callable(holidays) and not _ever_opens(made):
        never = ("has a window that does not open within a year.", "Give it days that come.")
        return replace(made, problems=(never,))
    return made


def _span(text: object, problems: list[Problem]) -> Span | None:
    begins, sign, ends = text.partition("-") if isinstance(text, str) else ("", "", "")
    try:
        if not sign:
            raise ValueError
        return _time(begins), time(0) if ends.strip() == "24:00" else _time(ends)
    except ValueError:
        problems.append((f"has a window with {text!r}.", 'Write from when until when: "09:00-17:00".'))
        return None


def _time(text: str) -> time:
    return datetime.strptime(text.strip(), "%H:%M").time()  # noqa: DTZ007 (of a wall clock)


def _weekdays(text: object, problems: list[Problem]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.lower().split(",") if isinstance(text, str) else [""]:
        first, _sign, last = (name.strip() for name in part.partition("-"))
        if first not in WEEKDAYS or (last or first) not in WEEKDAYS:
            problems.append((f"has a window with days = {text!r}.", 'Use "mon-fri", or "mon,wed": mon to sun.'))
            return frozenset(range(len(WEEKDAYS)))
        number = WEEKDAYS.index(first)
        length = (WEEKDAYS.index(last or first) - number) % len(WEEKDAYS)
        found |= {(number + more) % len(WEEKDAYS) for more in range(length + 1)}
    return frozenset(found)


def _zone(name: object, problems: list[Problem]) -> tzinfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(str(name))
    except (KeyError, ValueError, OSError):
        problems.append((f"has a window with zone = {name!r}.", 'Use the name of one: "Europe/Berlin".'))
        return None


def _ever_opens(made: Window) -> bool:
    now = datetime.now(UTC)
    return made.next_open(now, UTC) < now + AHEAD * DAY
