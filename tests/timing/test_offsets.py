"""Offsets: calendar units on the wall clock, exact durations beside them."""

from datetime import UTC, timedelta

import pytest

from tests.timing.moments import BERLIN, berlin, utc
from timeline.exceptions import DateOutOfRange
from timeline.timing import EARLIEST, Offset, offset_of


class TestApply:
    @pytest.mark.parametrize(
        ("anchor", "later"),
        [
            pytest.param(berlin(2026, 3, 10, 9), berlin(2026, 4, 4, 9), id="clocks go forward on the way"),
            pytest.param(berlin(2026, 10, 10, 9), berlin(2026, 11, 4, 9), id="clocks go back on the way"),
            pytest.param(berlin(2026, 6, 1, 9), berlin(2026, 6, 26, 9), id="no clock change"),
        ],
    )
    def test_keeps_the_time_of_day_over_25_days(self, anchor, later):
        moved = Offset(days=25).apply(anchor.astimezone(UTC), BERLIN)
        back = Offset(days=-25).apply(moved, BERLIN)

        assert moved == later.astimezone(UTC)
        assert back == anchor.astimezone(UTC)

    @pytest.mark.parametrize(
        ("anchor", "hour"),
        [
            pytest.param(berlin(2026, 3, 10, 9), 10, id="clocks go forward on the way"),
            pytest.param(berlin(2026, 10, 10, 9), 8, id="clocks go back on the way"),
        ],
    )
    def test_counts_600_hours_for_an_exact_25_days(self, anchor, hour):
        moved = Offset(exact=timedelta(days=25)).apply(anchor, BERLIN)

        assert moved - anchor.astimezone(UTC) == timedelta(hours=600)
        assert moved.astimezone(BERLIN).hour == hour

    def test_counts_days_on_the_wall_clock_of_the_zone_given(self):
        """The same instant and the same offset: another result in another zone."""
        anchor = utc(2026, 3, 28, 9)

        assert Offset(days=1).apply(anchor, UTC) == utc(2026, 3, 29, 9)
        assert Offset(days=1).apply(anchor, BERLIN) == utc(2026, 3, 29, 8)

    def test_goes_past_a_gap_by_as_much_as_the_clock_jumped(self):
        """Half past two does not exist on 29 March."""
        moved = Offset(days=1).apply(berlin(2026, 3, 28, 2, 30), BERLIN)

        assert moved == utc(2026, 3, 29, 1, 30)
        assert (moved.astimezone(BERLIN).hour, moved.astimezone(BERLIN).minute) == (3, 30)

    def test_takes_the_first_of_a_time_that_comes_twice(self):
        """Half past two comes twice on 25 October."""
        moved = Offset(days=1).apply(berlin(2026, 10, 24, 2, 30), BERLIN)

        assert moved == utc(2026, 10, 25, 0, 30)

    def test_takes_the_first_also_from_an_anchor_that_was_a_second_one(self):
        second = berlin(2025, 10, 26, 2, 30, fold=1)

        moved = Offset(days=364).apply(second, BERLIN)

        assert moved == utc(2026, 10, 25, 0, 30)

    def test_leaves_an_instant_that_comes_twice_alone_without_calendar_units(self):
        second = berlin(2026, 10, 25, 2, 30, fold=1)

        assert Offset().apply(second, BERLIN) == utc(2026, 10, 25, 1, 30)
        assert Offset(exact=timedelta(hours=1)).apply(second, BERLIN) == utc(2026, 10, 25, 2, 30)

    def test_adds_the_exact_part_after_the_calendar_part(self):
        """A day to 28 March 23:00, then four hours: over the gap, so five on the wall."""
        moved = Offset(days=1, exact=timedelta(hours=4)).apply(berlin(2026, 3, 27, 23), BERLIN)

        assert moved.astimezone(BERLIN) == berlin(2026, 3, 29, 4)

    @pytest.mark.parametrize(
        ("anchor", "months", "end"),
        [
            pytest.param((2026, 1, 31), 1, (2026, 2, 28), id="January 31st + 1"),
            pytest.param((2028, 1, 31), 1, (2028, 2, 29), id="in a leap year"),
            pytest.param((2026, 3, 31), -1, (2026, 2, 28), id="March 31st - 1"),
            pytest.param((2026, 10, 31), 1, (2026, 11, 30), id="October 31st + 1"),
            pytest.param((2026, 12, 15), 1, (2027, 1, 15), id="over the year's end"),
            pytest.param((2026, 1, 15), -1, (2025, 12, 15), id="back over the year's end"),
            pytest.param((2026, 12, 31), -12, (2025, 12, 31), id="a year back"),
            pytest.param((2028, 2, 29), 12, (2029, 2, 28), id="a leap day + 1 year"),
            pytest.param((2028, 2, 29), 48, (2032, 2, 29), id="a leap day + 4 years"),
            pytest.param((2096, 2, 29), 48, (2100, 2, 28), id="2100 is no leap year"),
        ],
    )
    def test_keeps_a_month_within_its_last_day(self, anchor, months, end):
        assert Offset(months=months).apply(utc(*anchor, 9), UTC) == utc(*end, 9)

    def test_counts_months_before_days(self):
        """The other way round it would be 3 March."""
        assert Offset(months=1, days=1).apply(utc(2026, 1, 31), UTC) == utc(2026, 3, 1)

    def test_counts_months_on_the_wall_clock_of_the_zone(self):
        """Late on 31 January in UTC it is February in Berlin already."""
        assert Offset(months=1).apply(utc(2026, 1, 31, 23, 30), BERLIN) == utc(2026, 2, 28, 23, 30)

    def test_answers_in_utc(self):
        assert Offset().apply(berlin(2026, 6, 1, 9), BERLIN).tzinfo is UTC
        assert Offset(days=1).apply(berlin(2026, 6, 1, 9), BERLIN).tzinfo is UTC

    def test_takes_both_ends_of_the_range(self):
        assert Offset(exact=-timedelta(hours=1)).apply(EARLIEST + timedelta(hours=1), UTC) == EARLIEST
        assert Offset(days=1).apply(utc(8999, 12, 30), UTC) == utc(8999, 12, 31)

    @pytest.mark.parametrize(
        ("anchor", "offset"),
        [
            pytest.param(utc(1970, 1, 1), Offset(exact=-timedelta(microseconds=1)), id="just before 1970"),
            pytest.param(utc(1970, 1, 2), Offset(days=-2), id="days before 1970"),
            pytest.param(utc(8999, 12, 31), Offset(days=1), id="just 9000"),
            pytest.param(utc(2026, 1, 1), Offset(months=12 * 7000), id="9026"),
            pytest.param(utc(2026, 1, 1), Offset(months=12 * 9000), id="over the calendar's end"),
            pytest.param(utc(2026, 1, 1), Offset(months=-12 * 3000), id="before the calendar's start"),
            pytest.param(utc(2026, 1, 1), Offset(months=10**30), id="more months than fit a number"),
            pytest.param(utc(2026, 1, 1), Offset(days=10**7), id="days over the calendar's end"),
            pytest.param(utc(2026, 1, 1), Offset(days=10**30), id="more days than fit a number"),
            pytest.param(utc(2026, 1, 1), Offset(exact=timedelta.max), id="the longest duration"),
            pytest.param(utc(2026, 1, 1), Offset(exact=timedelta.min), id="the longest duration back"),
        ],
    )
    def test_refuses_what_falls_out_of_range(self, anchor, offset):
        with pytest.raises(DateOutOfRange, match="outside the years 1970 to 9000"):
            offset.apply(anchor, UTC)


class TestOffsetDescribe:
    @pytest.mark.parametrize(
        ("offset", "text"),
        [
            (Offset(), "0 seconds"),
            (Offset(days=1), "1 day"),
            (Offset(days=25), "25 days"),
            (Offset(days=-5), "5 days"),
            (Offset(months=1, days=2), "1 month 2 days"),
            (Offset(months=-13), "1 year 1 month"),
            (Offset(months=24), "2 years"),
            (Offset(exact=timedelta(hours=1, minutes=2, seconds=3)), "1 hour 2 minutes 3 seconds"),
            (Offset(exact=timedelta(seconds=-90)), "1 minute 30 seconds"),
            (Offset(exact=timedelta(days=2)), "48 hours"),
            (Offset(exact=timedelta(minutes=61)), "1 hour 1 minute"),
        ],
    )
    def test_says_it_in_words_without_sign_and_zeros(self, offset, text):
        assert offset.describe() == text


class TestOffsetOf:
    def test_takes_the_units_of_after(self):
        offset = offset_of(timedelta(hours=1), years=1, weeks=1, days=1, minutes=30)

        assert offset == Offset(months=12, days=8, exact=timedelta(minutes=90))

    @pytest.mark.parametrize("units", [{"days": -1}, {"days": 1.5}, {"hours": "x"}])
    def test_refuses_what_is_no_distance(self, units):
        with pytest.raises(ValueError, match=r"negative|whole number|no duration"):
            offset_of(**units)

    def test_can_be_turned_round(self):
        assert -offset_of(days=1, hours=2) == Offset(days=-1, exact=-timedelta(hours=2))

    def test_is_true_only_with_a_distance(self):
        assert not offset_of()
        assert offset_of(days=1)
        assert offset_of(seconds=1)
