"""Instants: aware, in UTC, and within the years that rows can hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from timeline.exceptions import DateOutOfRange, NaiveDatetime

_MARK: Final = "\x1f"  # Around what is left out unless times are told apart.
_PART: Final = re.compile(f"{_MARK}([^{_MARK}]*){_MARK}")
_MOMENT: Final = re.compile(rf"(\d{{4}}-\d\d-\d\d \d\d:\d\d){_MARK}:(\d\d){_MARK}")

_asked: ContextVar[bool] = ContextVar("timeline_telling_apart", default=False)

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
# The largest distances of time zones from UTC.
BEHIND: Final = timedelta(hours=12)
AHEAD: Final = timedelta(hours=14)


def where_apart(text: str) -> str:
    """A text that is shown only within ``told_apart``, and there only if times have their seconds."""
    return f"{_MARK}{text}{_MARK}" if _asked.get() else ""


def told_apart(tell: Callable[[], Iterable[str]]) -> list[str]:
    """Lines with seconds in the times of ``in_utc`` if two are of the same minute; an outer answer counts as a whole."""
    if _asked.get():
        return list(tell())
    token = _asked.set(True)
    try:
        lines = list(tell())
    finally:
        _asked.reset(token)
    moments = {found for line in lines for found in _MOMENT.findall(line)}
    kept = r"\1" if len(moments) > len({minute for minute, _second in moments}) else ""
    return [_PART.sub(kept, line) for line in lines]


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


def in_utc(at: datetime) -> str:
    """Write a moment for people, in UTC: to the minute, or, within ``told_apart``, to the second where that tells more."""
    at = at.astimezone(UTC)
    return f"{at:%Y-%m-%d %H:%M}{where_apart(f'{at::%S}')} UTC"


def check_time(field_name: str, value: datetime) -> datetime:
    """Take an aware datetime from 1970 to 9000, as UTC; ``NaiveDatetime`` or ``DateOutOfRange`` names the field."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise NaiveDatetime(field_name)
    try:
        return check_range(field_name, value.astimezone(UTC))
    except OverflowError:
        raise DateOutOfRange(field_name, value) from None


def check_range(field_name: str, value: datetime) -> datetime:
    """Refuse a date outside 1970–9000 (in UTC); ``DateOutOfRange`` names the field."""
    if not EARLIEST <= value < LATEST:
        raise DateOutOfRange(field_name, value)
    return value
