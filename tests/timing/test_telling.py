"""Slots in words."""

from datetime import time

import pytest
from django.utils import translation

from tests.timing.moments import BERLIN, utc
from timeline import cron, daily, hourly, monthly, weekly
from timeline.features.recurring.slots import EveryDay, Slots, in_words, on_the_wall


class TestInWords:
    @pytest.mark.parametrize(
        ("recurring", "said"),
        [
            (daily("02:00"), "every day at 02:00"),
            (hourly(), "every hour at minute 0"),
            (hourly(15), "every hour at minute 15"),
            (weekly("mon 06:00"), "every Monday at 06:00"),
            (weekly("thu,mon 06:00"), "every Monday and Thursday at 06:00"),
            (weekly("mon,thu,sun 06:00"), "every Monday, Thursday and Sunday at 06:00"),
            (monthly(1, "00:00"), "on day 1 of every month at 00:00"),
            (monthly(31, "00:00"), "on day 31 of every month, or the last it has, at 00:00"),
            (cron("*/15 8-18 * * mon-fri"), "as the cron expression “*/15 8-18 * * mon-fri” says"),
            (cron("0 2 * * *"), "as the cron expression “0 2 * * *” says"),
        ],
    )
    def test_says_when_it_comes(self, recurring, said):
        assert in_words(recurring.slots) == said

    def test_names_the_days_in_the_language_of_the_reader(self):
        with translation.override("de"):
            assert "Montag" in in_words(weekly("mon 06:00").slots)

    def test_is_about_what_is_declared_and_nothing_else(self):
        assert in_words(Slots(EveryDay(), (time(2, 5),))) == "every day at 02:05"


class TestOnTheWall:
    def test_writes_a_moment_as_the_clock_there_shows_it(self):
        assert on_the_wall(utc(2026, 11, 25, 1), BERLIN) == "25 November 2026 02:00"
