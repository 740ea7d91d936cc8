"""The times of what is repeated: all of them count from the first."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from timeline.exceptions import DateOutOfRange
from timeline.timing import Offset, Repeat, every

FIRST = datetime(2026, 1, 31, 9, tzinfo=UTC)
WEEK = timedelta(days=7)
BERLIN = ZoneInfo("Europe/Berlin")


def repeated(**given):
    when = every(**given)
    assert not when.problems
    return when.repeats


class TestTimeOf:
    @pytest.mark.parametrize(("number", "weeks"), [(1, 0), (2, 1), (8, 7)])
    def test_counts_from_the_first(self, number, weeks):
        assert repeated(days=7).time_of(number, FIRST, UTC) == FIRST + weeks * WEEK

    def test_is_the_last_day_of_a_month_again_after_a_shorter_one(self):
        days = [repeated(months=1).time_of(number, FIRST, UTC).day for number in range(1, 5)]

        assert days == [31, 28, 31, 30]

    def test_is_the_same_time_of_day_across_a_clock_change(self):
        first = datetime(2026, 3, 27, 9, tzinfo=BERLIN)

        assert repeated(days=1).time_of(4, first, BERLIN).astimezone(BERLIN).hour == 9
        assert repeated(hours=24).time_of(4, first, BERLIN).astimezone(BERLIN).hour == 10

    def test_is_refused_where_no_date_is(self):
        with pytest.raises(DateOutOfRange):
            repeated(years=50).time_of(300, FIRST, UTC)


class TestTimeAfter:
    @pytest.mark.parametrize(
        ("since", "weeks"),
        [
            (-WEEK, 0),
            (timedelta(0), 1),
            (timedelta(hours=1), 1),
            (WEEK - timedelta(seconds=1), 1),
            (WEEK, 2),
            (3.5 * WEEK, 4),
        ],
    )
    def test_is_the_first_that_has_not_passed(self, since, weeks):
        assert repeated(days=7).time_after(FIRST + since, FIRST, UTC) == FIRST + weeks * WEEK

    @pytest.mark.parametrize(
        "given", [{"months": 1}, {"days": 1}, {"hours": 5}, {"years": 1}, {"months": 1, "days": 2}]
    )
    def test_agrees_with_counting_them_one_by_one(self, given):
        repeats, first = repeated(**given), datetime(2024, 1, 31, 2, 30, tzinfo=BERLIN)
        times = [repeats.time_of(number, first, BERLIN) for number in range(1, 60)]

        assert all(earlier < later for earlier, later in pairwise(times))
        for earlier, later in pairwise(times):
            assert repeats.time_after(earlier, first, BERLIN) == later
            assert repeats.time_after(later - timedelta(microseconds=1), first, BERLIN) == later

    def test_needs_no_more_steps_after_years(self):
        """A minute, for a hundred years."""
        long_after = FIRST + timedelta(days=36000, seconds=30)

        assert repeated(minutes=1).time_after(long_after, FIRST, UTC) == long_after + timedelta(seconds=30)


class TestIsTime:
    def test_knows_its_times_from_others(self):
        repeats = Repeat(Offset(days=7))

        assert repeats.is_time(FIRST, FIRST, UTC)
        assert repeats.is_time(FIRST + 3 * WEEK, FIRST, UTC)
        assert not repeats.is_time(FIRST + timedelta(days=8), FIRST, UTC)
        assert not repeats.is_time(FIRST - WEEK, FIRST, UTC)


def has_replied(lead): ...


class TestEvery:
    def test_begins_after_one_interval(self):
        assert every(days=7).resolve(FIRST, UTC) == FIRST + WEEK

    def test_begins_when_it_is_told_to(self):
        assert every(days=7, first=timedelta(0)).resolve(FIRST, UTC) == FIRST
        assert every(days=7, first=timedelta(hours=1)).resolve(FIRST, UTC) == FIRST + timedelta(hours=1)

    def test_takes_a_timedelta(self):
        assert every(WEEK) != every(days=7)  # One is exact, the other is of the calendar.
        assert every(WEEK).repeats.length == every(days=7).repeats.length

    @pytest.mark.parametrize(
        ("when", "said"),
        [
            (every(days=7), "every 7 days, first 7 days after the start of the run"),
            (every(days=7, most=8), "every 7 days, 8 times at most, first 7 days after the start of the run"),
            (every(hours=1, most=1, first=timedelta(0)), "every 1 hour, 1 time at most, first at the start of the run"),
            (
                every(days=7, until=has_replied),
                "every 7 days, until has_replied, first 7 days after the start of the run",
            ),
        ],
    )
    def test_says_what_it_is(self, when, said):
        assert when.describe() == said

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ({}, "repeats without an interval."),
            ({"days": -7}, "has a negative distance."),
            ({"days": 7.5}, "days=7.5 is not a whole number."),
            ({"seconds": 0.5}, "repeats every 0:00:00.500000."),
            ({"days": 40_000}, "repeats every 40000 days."),
            ({"days": 7, "most": 0}, "has most = 0."),
            ({"days": 7, "most": True}, "has most = True."),
            ({"days": 7, "most": 1_001}, "has most = 1001."),
            ({"days": 365, "most": 200}, "lasts 73,000 days."),
            ({"days": 7, "first": 3}, "begins after 3."),
            ({"days": 7, "first": -WEEK}, "begins after datetime.timedelta(days=-7)."),
        ],
    )
    def test_says_what_is_wrong(self, given, problem):
        [(found, remedy)] = every(**given).problems

        assert found == problem
        assert remedy
