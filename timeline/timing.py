"""
When: ``after``, ``before`` and ``at``, relative to an anchor.

Years, months, weeks and days are calendar units, counted on the wall clock of a time zone: 25 days later is the same
time of day, also across a clock change. Hours, minutes, seconds and any ``timedelta`` are exact durations. Pure rules.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, Protocol

from timeline.exceptions import DateOutOfRange, NaiveDatetime

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)

RUN_START: Final = "start"  # The anchor of a time that counts from the run's start.


class NamesTask(Protocol):
    """Anything that stands for a task of the same timeline: what ``@task`` makes of a method."""

    @property
    def name(self) -> str:
        """Name of the method."""


@dataclass(frozen=True, slots=True)
class Offset:
    """
    A signed distance in time: calendar units first, then an exact duration.

    Args:
        months: Calendar months; a day that the target month lacks becomes its last.
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
            zone: Whose wall clock the calendar units count on.

        Returns:
            In UTC. A wall-clock time that a clock change skips becomes the one as much later as the clock jumped; of
            one that comes twice, the first.

        Raises:
            DateOutOfRange: if the result is outside 1970–9000.
        """
        try:
            moved = self._on_the_calendar(anchor, zone).astimezone(UTC) + self.exact
        except (OverflowError, ValueError):
            raise DateOutOfRange("offset", f"{self.describe()} from {anchor}") from None
        return check_range("offset", moved)

    def _on_the_calendar(self, anchor: datetime, zone: tzinfo) -> datetime:
        if not (self.months or self.days):
            return anchor
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
        """Say it in words, without its sign: ``1 month 25 days``."""
        seconds = abs(int(self.exact.total_seconds()))
        parts = [
            (abs(self.months) // 12, "year"),
            (abs(self.months) % 12, "month"),
            (abs(self.days), "day"),
            (seconds // 3600, "hour"),
            (seconds % 3600 // 60, "minute"),
            (seconds % 60, "second"),
        ]
        return " ".join(f"{count} {unit}{'s' * (count != 1)}" for count, unit in parts if count) or "0 seconds"


@dataclass(frozen=True, slots=True)
class When:
    """
    A time relative to an anchor. Made by ``after``, ``before`` and ``at``.

    Args:
        verb: ``after``, ``before`` or ``at``.
        anchor: ``start`` (of the run), ``field:<name>`` (of the entity) or ``end:<name>`` (of another task).
        offset: Signed distance from the anchor.
        predecessor: What stands for the other task, where the anchor is its end.
        problems: What is wrong with it, as (problem, remedy); the timeline's class reports them with its name.
    """

    verb: str
    anchor: str
    offset: Offset
    predecessor: NamesTask | None = field(default=None, compare=False, repr=False)
    problems: tuple[tuple[str, str], ...] = ()

    @property
    def field_name(self) -> str:
        """The entity's field that is the anchor; empty for another anchor."""
        return self.anchor.removeprefix("field:") if self.anchor.startswith("field:") else ""

    @property
    def predecessor_name(self) -> str:
        """The task whose end is the anchor; empty for another anchor."""
        return self.anchor.removeprefix("end:") if self.anchor.startswith("end:") else ""

    def resolve(self, anchor_value: datetime, zone: tzinfo) -> datetime:
        """
        Compute the time from the anchor's value; see ``Offset.apply``.

        Raises:
            DateOutOfRange: naming the field, or the other anchor.
        """
        try:
            return self.offset.apply(anchor_value, zone)
        except DateOutOfRange as error:
            raise DateOutOfRange(self.field_name or self.anchor, error.value) from None

    def describe(self) -> str:
        """Say it in words: ``5 days before trial_ends_at``."""
        if self.predecessor_name:
            what, when = f"{self.predecessor_name} completes", "when"
        else:
            what, when = self.field_name or "the start of the run", "at"
        return f"{self.offset.describe()} {self.verb} {what}" if self.offset else f"{when} {what}"


def after(
    anchor: str | NamesTask | timedelta | None = None,
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
) -> When:
    """
    So long after the anchor.

    Args:
        anchor: A task of the same timeline (its end), the name of a field of the entity, or nothing: the run's start.
        delta: Exact duration; may stand alone as the first argument.
        years, months, weeks, days: Whole calendar units.
        hours, minutes, seconds: Exact units.
    """
    if isinstance(anchor, timedelta):
        delta += anchor
        anchor = None
    offset, problems = _offset(years, months, weeks, days, delta, hours, minutes, seconds)
    if anchor is None:
        return When("after", RUN_START, offset, None, problems)
    if isinstance(anchor, str):
        return When("after", f"field:{anchor}", offset, None, (*problems, *_field_problems(anchor)))
    if not isinstance(getattr(anchor, "name", None), str):
        problem = (f"after({anchor!r}) names no anchor.", "Give a task of this timeline or the name of a field.")
        return When("after", RUN_START, offset, None, (*problems, problem))
    return When("after", f"end:{anchor.name}", offset, anchor, problems)


def before(
    anchor: str,
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
) -> When:
    """
    So long before a date that the entity holds.

    Args:
        anchor: Name of a date or datetime field of the entity.
        delta: Exact duration.
        years, months, weeks, days: Whole calendar units.
        hours, minutes, seconds: Exact units.
    """
    offset, problems = _offset(years, months, weeks, days, delta, hours, minutes, seconds)
    if not offset:
        problems = (*problems, ("before() without a distance.", "Give one, e.g. days=5, or use at()."))
    if not isinstance(anchor, str):
        problem = ("before() counts back from a field of the entity only.", 'Name one: before("ends_at", days=5).')
        return When("before", RUN_START, -offset, None, (*problems, problem))
    return When("before", f"field:{anchor}", -offset, None, (*problems, *_field_problems(anchor)))


def at(anchor: str, /) -> When:
    """Exactly at a date that the entity holds; ``anchor`` is the name of its date or datetime field."""
    if not isinstance(anchor, str):
        problem = ("at() takes the name of a field of the entity.", 'Name one: at("ends_at").')
        return When("at", RUN_START, Offset(), None, (problem,))
    return When("at", f"field:{anchor}", Offset(), None, _field_problems(anchor))


def as_anchor_value(value: date | datetime | None, zone: tzinfo, field_name: str) -> datetime | None:
    """
    Make an instant of what a field holds.

    Args:
        value: A datetime (aware), or a date: the start of that day in the zone.
        zone: Whose midnight a date means.
        field_name: For the error.

    Raises:
        NaiveDatetime, DateOutOfRange: naming the field.
    """
    if value is None:
        return None
    if isinstance(value, datetime):
        return check_time(field_name, value)
    return check_range(field_name, datetime.combine(value, time.min, tzinfo=zone).astimezone(UTC))


def check_time(field_name: str, value: datetime) -> datetime:
    """
    Take an aware datetime within range, as UTC.

    Raises:
        NaiveDatetime, DateOutOfRange: naming the field.
    """
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise NaiveDatetime(field_name)
    try:
        return check_range(field_name, value.astimezone(UTC))
    except OverflowError:
        raise DateOutOfRange(field_name, value) from None


def check_range(field_name: str, value: datetime) -> datetime:
    """
    Refuse a date outside 1970–9000 (in UTC).

    Raises:
        DateOutOfRange: naming the field.
    """
    if not EARLIEST <= value < LATEST:
        raise DateOutOfRange(field_name, value)
    return value


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
    Make an offset from the units ``after`` takes.

    Raises:
        ValueError: if a unit is negative or a calendar unit is not whole.
    """
    offset, problems = _offset(years, months, weeks, days, delta, hours, minutes, seconds)
    if problems:
        raise ValueError(" ".join(problems[0]))
    return offset


def _offset(
    years: int, months: int, weeks: int, days: int, delta: timedelta, hours: float, minutes: float, seconds: float
) -> tuple[Offset, tuple[tuple[str, str], ...]]:
    problems = []
    units = {"years": years, "months": months, "weeks": weeks, "days": days}
    for unit, count in units.items():
        if type(count) is not int:
            problems.append((f"{unit}={count!r} is not a whole number.", "Use whole calendar units, or hours=…"))
    try:
        exact = delta + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    except (TypeError, OverflowError):
        problems.append(("its hours, minutes, seconds or timedelta make no duration.", "Give numbers, or a timedelta."))
    if problems:
        return Offset(), tuple(problems)
    if exact < timedelta(0) or min(units.values()) < 0:
        problems.append(("has a negative distance.", "Count forwards with after(), backwards with before()."))
    return Offset(years * 12 + months, weeks * 7 + days, exact), tuple(problems)


def _field_problems(name: str) -> tuple[tuple[str, str], ...]:
    if name.isidentifier():
        return ()
    return ((f"{name!r} is not the name of a field.", "Name a date or datetime field of the entity itself."),)
