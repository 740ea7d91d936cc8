"""Instants: aware, in UTC and within the years that rows hold; and the days that begin at one."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.timing.moments import BERLIN, berlin, utc
from timeline.exceptions import DateOutOfRange, NaiveDatetime
from timeline.timing import EARLIEST, LATEST, as_anchor_value, check_time, day_of, in_utc


class TestAsAnchorValue:
    def test_takes_an_aware_datetime_as_utc(self):
        value = as_anchor_value(berlin(2026, 6, 1, 9), UTC, "ships_at")

        assert value == utc(2026, 6, 1, 7)
        assert value.tzinfo is UTC

    def test_takes_a_date_as_the_start_of_the_day_in_the_zone(self):
        assert as_anchor_value(date(2026, 6, 1), BERLIN, "due_on") == utc(2026, 5, 31, 22)
        assert as_anchor_value(date(2026, 6, 1), UTC, "due_on") == utc(2026, 6, 1)

    @pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Marquesas", "UTC"])
    def test_that_is_a_midnight_tells_the_day(self, zone):
        midnight = as_anchor_value(date(2026, 6, 1), ZoneInfo(zone), "due_on")

        assert day_of(midnight) == date(2026, 6, 1)

    @pytest.mark.parametrize(
        ("zone", "day"),
        [("Pacific/Kiritimati", 2), ("Pacific/Auckland", 2), ("Etc/GMT+12", 1), ("Pacific/Honolulu", 1)],
    )
    def test_that_may_be_the_midnight_of_two_days_tells_neither(self, zone, day):
        midnight = as_anchor_value(date(2026, 6, day), ZoneInfo(zone), "due_on")

        assert day_of(midnight) is None

    def test_starts_a_day_without_midnight_when_it_first_can(self):
        """In Cairo, 26 April 2024 began at one o'clock."""
        cairo = ZoneInfo("Africa/Cairo")

        value = as_anchor_value(date(2024, 4, 26), cairo, "due_on")

        assert value.astimezone(cairo) == datetime(2024, 4, 26, 1, tzinfo=cairo)

    def test_leaves_what_is_not_set_unset(self):
        assert as_anchor_value(None, UTC, "due_on") is None

    def test_refuses_a_naive_datetime_and_names_the_field(self):
        naive = datetime(2026, 6, 1)  # noqa: DTZ001 (the mistake)

        with pytest.raises(NaiveDatetime, match="make_aware") as caught:
            as_anchor_value(naive, UTC, "ships_at")

        assert caught.value.field == "ships_at"

    @pytest.mark.parametrize(
        ("value", "zone"),
        [
            pytest.param(date(1969, 12, 31), UTC, id="a date before 1970"),
            pytest.param(date(1970, 1, 1), BERLIN, id="a date that begins before 1970 in UTC"),
            pytest.param(date(9000, 1, 1), UTC, id="a date in 9000"),
            pytest.param(date.max, ZoneInfo("America/New_York"), id="the last date"),
            pytest.param(date.min, BERLIN, id="the first date, that begins before the calendar in UTC"),
            pytest.param(datetime.min.replace(tzinfo=UTC), UTC, id="the first datetime"),
            pytest.param(datetime.max.replace(tzinfo=UTC), UTC, id="the last datetime"),
        ],
    )
    def test_refuses_a_date_out_of_range_and_names_the_field(self, value, zone):
        with pytest.raises(DateOutOfRange) as caught:
            as_anchor_value(value, zone, "due_on")

        assert caught.value.field == "due_on"


class TestCheckTime:
    def test_takes_an_aware_datetime_as_utc(self):
        value = check_time("at", berlin(2026, 6, 1, 9))

        assert (value, value.tzinfo) == (utc(2026, 6, 1, 7), UTC)

    @pytest.mark.parametrize("value", [utc(1970, 1, 1), utc(9000, 1, 1) - timedelta(microseconds=1)])
    def test_takes_both_ends_of_the_range(self, value):
        assert check_time("at", value) == value

    @pytest.mark.parametrize("value", [EARLIEST - timedelta(microseconds=1), LATEST])
    def test_refuses_what_is_just_outside(self, value):
        with pytest.raises(DateOutOfRange) as caught:
            check_time("at", value)

        assert (caught.value.field, caught.value.value) == ("at", value)

    def test_refuses_what_utc_can_not_express(self):
        with pytest.raises(DateOutOfRange, match=r"^at: "):
            check_time("at", datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo")))

    @pytest.mark.parametrize("value", [datetime(2026, 6, 1), date(2026, 6, 1), "2026-06-01", None])  # noqa: DTZ001
    def test_refuses_what_is_no_aware_datetime(self, value):
        said = "at: has no time zone." if isinstance(value, datetime) else "at: is no datetime. Give an aware one"
        with pytest.raises(NaiveDatetime, match=f"^{said}"):
            check_time("at", value)


class TestInUtc:
    def test_writes_a_moment_to_the_minute(self):
        assert in_utc(berlin(2026, 6, 1, 9, 30, 59)) == "2026-06-01 07:30 UTC"
