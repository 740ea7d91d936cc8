"""Instants: aware, in UTC, and within the years that rows can hold."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from timeline.exceptions import DateOutOfRange, NaiveDatetime

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)

# The largest distances of time zones from UTC.
BEHIND: Final = timedelta(hours=12)
AHEAD: Final = timedelta(hours=14)


def as_anchor_value(value: date | datetime | None, zone: tzinfo, field_name: str) -> datetime | None:
    """
    Make an instant of the value of a field.

    Args:
        value: A datetime (aware), or a date: the start of that day in the zone.
        zone: The zone whose midnight a date means.
        field_name: For the error.

    Raises:
        NaiveDatetime, DateOutOfRange: naming the field.
    """
    if value is None:
        return None
    if isinstance(value, datetime):
        return check_time(field_name, value)
    return check_time(field_name, datetime.combine(value, time.min, tzinfo=zone))


def begins_at(day: date, instant: datetime) -> bool:
    """Whether somewhere on earth a day begins at this instant."""
    return day in _days_at(instant)


def day_of(instant: datetime) -> date | None:
    """Tell which day begins at this instant somewhere on earth; None if it may be one of two."""
    days = _days_at(instant)
    return days[0] if len(days) == 1 else None


def _days_at(instant: datetime) -> list[date]:
    """Days that begin at this instant: clocks are at most 12 hours behind UTC, or 14 hours ahead of it."""
    at = instant.astimezone(UTC)
    first = (at - BEHIND - timedelta(microseconds=1)).date() + timedelta(days=1)
    last = (at + AHEAD).date()
    return [first] if first == last else [first, last]


def in_utc(at: datetime) -> str:
    """Write a moment for people: to the minute, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


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
