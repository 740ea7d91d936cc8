"""Moments as people read them, in UTC and so named, or by the clock of a page's zone; and how far they are from now."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext as _

_MARK: Final = "\x1f"  # Around what is left out unless times are told apart.
_PART: Final = re.compile(f"{_MARK}([^{_MARK}]*){_MARK}")
_MOMENT: Final = re.compile(rf"(\d{{4}}-\d\d-\d\d \d\d:\d\d){_MARK}:(\d\d){_MARK}")

_asked: ContextVar[bool] = ContextVar("timeline_telling_apart", default=False)
_zone: ContextVar[tzinfo | None] = ContextVar("timeline_zone_of_page", default=None)


@contextmanager
def told_in(zone: tzinfo) -> Iterator[None]:
    """Within the block, ``told_time`` writes what the clock of this zone shows: the page names the zone."""
    token = _zone.set(zone)
    try:
        yield
    finally:
        _zone.reset(token)


def zone_told() -> tzinfo | None:
    """The zone of ``told_in``; None: outside of it."""
    return _zone.get()


def told_time(at: datetime) -> str:
    """Write a moment for who reads now: in the zone of ``told_in``, otherwise as ``in_utc``. Not for what is stored."""
    zone = _zone.get()
    return in_utc(at) if zone is None else _to_the_minute(at.astimezone(zone))


def in_utc(at: datetime) -> str:
    """Write a moment for people, in UTC: to the minute, or, within ``told_apart``, to the second where that tells more."""
    return f"{_to_the_minute(at.astimezone(UTC))} UTC"


def _to_the_minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}{where_apart(f'{at::%S}')}"


def where_apart(text: str) -> str:
    """A text that is shown only within ``told_apart``, and there only if times have their seconds."""
    return f"{_MARK}{text}{_MARK}" if _asked.get() else ""


def told_apart(tell: Callable[[], Iterable[str]]) -> list[str]:
    """Lines with seconds in the times that they tell if two are of the same minute; an outer answer counts as a whole."""
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


def how_long(seconds: float) -> str:
    """Write a duration for people."""
    if seconds < 1:
        return _("%(number)d ms") % {"number": round(seconds * 1000)}
    return _("%(number).1f s") % {"number": seconds} if seconds < 120 else str(timedelta(seconds=round(seconds)))


def from_now(at: datetime, now: datetime) -> str:
    """Say how far a moment is: "in 4 minutes", "3 days ago"."""
    if abs(at - now) < timedelta(minutes=1):
        return _("in less than a minute") if at > now else _("just now")
    if at > now:
        return _("in %(span)s") % {"span": timeuntil(at, now)}
    return _("%(span)s ago") % {"span": timesince(at, now)}
