"""Holidays of a window: of a country, by the package ``holidays``; from a list; or by a function."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from timeline.timing.offsets import Problem

IsHoliday = Callable[[date], bool]


def holidays_of(given: Any) -> tuple[IsHoliday | None, Problem | None]:
    """
    Read what was given to a window as its holidays.

    Args:
        given: The code of a country, or of a country and its part; dates; a function of a date; None.

    Returns:
        A function that tells whether a day is a holiday, None: no day is; and what is wrong with what was given.
    """
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
