"""Holidays of a window, read from whatever says them."""

from __future__ import annotations

import builtins
from datetime import date

import pytest

from timeline.timing.windows import holidays_of

CHRISTMAS, EPIPHANY, A_DAY = date(2026, 12, 25), date(2026, 1, 6), date(2026, 11, 25)


class TestHolidaysOf:
    @pytest.mark.parametrize(
        ("given", "days"),
        [
            ("DE", [CHRISTMAS]),
            (("DE", "BY"), [CHRISTMAS, EPIPHANY]),
            ([A_DAY], [A_DAY]),
            ({A_DAY}, [A_DAY]),
            (lambda day: day == A_DAY, [A_DAY]),
        ],
    )
    def test_says_which_days_are_some(self, given, days):
        is_holiday, problem = holidays_of(given)

        assert problem is None
        assert [day for day in (CHRISTMAS, EPIPHANY, A_DAY) if is_holiday(day)] == days

    def test_says_what_is_missing(self, monkeypatch):
        there = builtins.__import__

        def lacking(name, *given, **more):
            if name == "holidays":
                raise ImportError(name)
            return there(name, *given, **more)

        monkeypatch.setattr(builtins, "__import__", lacking)

        _none, (_problem, remedy) = holidays_of("DE")

        assert 'pip install "django-entity-timeline[holidays]"' in remedy
