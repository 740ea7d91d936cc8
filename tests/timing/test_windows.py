"""Windows: when they open, and what becomes of a time outside; also where the clock changes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeline.timing import window
from timeline.timing.windows import AHEAD

BERLIN = ZoneInfo("Europe/Berlin")
OFFICE = window("09:00-17:00", days="mon-fri")
FIRST, LAST = datetime(1997, 1, 1), datetime(2037, 1, 1)  # noqa: DTZ001 (as Hypothesis wants them)
ZONES = sorted(zone for zone in available_timezones() if "/" in zone)


def berlin(text):
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN)


def on_the_wall(moment):
    return f"{moment.astimezone(BERLIN):%a %d %H:%M}"


class TestNextOpen:
    @pytest.mark.parametrize(
        ("at", "opens"),
        [
            ("2026-11-25 08:59", "Wed 25 09:00"),
            ("2026-11-25 09:00", "Wed 25 09:00"),
            ("2026-11-25 16:59", "Wed 25 16:59"),
            ("2026-11-25 17:00", "Thu 26 09:00"),
            ("2026-11-27 22:10", "Mon 30 09:00"),
            ("2026-11-28 12:00", "Mon 30 09:00"),
        ],
    )
    def test_is_this_moment_or_the_next_beginning(self, at, opens):
        assert on_the_wall(OFFICE.next_open(berlin(at), BERLIN)) == opens

    def test_goes_over_midnight_with_the_day_on_which_it_begins(self):
        night = window("22:00-06:00", days="fri")

        assert night.is_open(berlin("2026-11-28 05:59"), BERLIN)
        assert not night.is_open(berlin("2026-11-28 06:00"), BERLIN)
        assert not night.is_open(berlin("2026-11-28 22:00"), BERLIN)
        assert on_the_wall(night.next_open(berlin("2026-11-28 06:00"), BERLIN)) == "Fri 04 22:00"

    def test_has_a_break_between_two_spans_however_they_are_written(self):
        lunch = window("13:00-17:00", "09:00-12:00")

        assert on_the_wall(lunch.next_open(berlin("2026-11-25 12:30"), BERLIN)) == "Wed 25 13:00"
        assert on_the_wall(lunch.next_open(berlin("2026-11-25 18:00"), BERLIN)) == "Thu 26 09:00"

    def test_passes_over_holidays(self):
        bavarian = window("09:00-17:00", days="mon-fri", holidays=("DE", "BY"))
        listed = window("09:00-17:00", holidays=[date(2026, 12, 24), date(2026, 12, 25)])
        asked = window("09:00-17:00", holidays=lambda day: day.month == 12)

        assert on_the_wall(bavarian.next_open(berlin("2026-12-24 18:00"), BERLIN)) == "Mon 28 09:00"
        assert on_the_wall(listed.next_open(berlin("2026-12-23 18:00"), BERLIN)) == "Sat 26 09:00"
        assert asked.next_open(berlin("2026-12-01 10:00"), BERLIN) == berlin("2027-01-01 09:00")

    def test_has_its_own_clock_where_it_names_one(self):
        tokyo = window("09:00-17:00", zone="Asia/Tokyo")

        assert on_the_wall(tokyo.next_open(berlin("2026-11-25 12:00"), BERLIN)) == "Thu 26 01:00"

    def test_takes_the_whole_day(self):
        assert window("00:00-24:00").is_open(berlin("2026-11-25 23:59"), BERLIN)
        assert not window("00:00-24:00", days="mon").is_open(berlin("2026-11-25 23:59"), BERLIN)

    def test_gives_up_where_none_comes(self):
        never = window("09:00-17:00", holidays=lambda day: True)

        assert never.next_open(berlin("2026-11-25 12:00"), UTC) == berlin("2026-11-25 12:00") + timedelta(days=AHEAD)


class TestShifted:
    @pytest.mark.parametrize(
        ("outside", "due"), [("next", "Mon 30 09:00"), ("previous", "Fri 27 09:00"), ("cancel", "Sun 29 12:00")]
    )
    def test_is_as_outside_says(self, outside, due):
        office = window("09:00-17:00", days="mon-fri", outside=outside)

        assert on_the_wall(office.shifted(berlin("2026-11-29 12:00"), BERLIN, berlin("2026-11-25 12:00"))) == due
        inside = berlin("2026-11-25 12:00")
        assert office.shifted(inside, BERLIN, inside) == inside

    def test_is_never_before_now(self):
        early = window("09:00-17:00", days="mon-fri", outside="previous")

        assert (
            on_the_wall(early.shifted(berlin("2026-11-29 12:00"), BERLIN, berlin("2026-11-27 09:01"))) == "Mon 30 09:00"
        )


class TestAClockChange:
    def test_skips_an_opening_forward_as_far_as_the_clock_jumped(self):
        """29 March 2026, Berlin: 02:00 to 03:00 is not there."""
        early = window("02:30-04:00")

        assert on_the_wall(early.next_open(berlin("2026-03-29 01:00"), BERLIN)) == "Sun 29 03:30"

    def test_takes_both_of_the_hour_that_comes_twice(self):
        """25 October 2026, Berlin: 02:00 to 03:00 comes twice."""
        early = window("02:00-02:30")
        first, second = berlin("2026-10-25 02:15"), berlin("2026-10-25 02:15").replace(fold=1)

        assert early.is_open(first, BERLIN)
        assert early.is_open(second, BERLIN)

    @given(
        zone=st.sampled_from(ZONES).map(ZoneInfo),
        moment=st.datetimes(FIRST, LAST, timezones=st.just(UTC)),
        more=st.timedeltas(timedelta(0), timedelta(days=3)),
        spans=st.lists(
            st.tuples(st.times(), st.times()).map(lambda span: f"{span[0]:%H:%M}-{span[1]:%H:%M}"),
            min_size=1,
            max_size=2,
        ),
        days=st.sampled_from(["mon-sun", "mon-fri", "sat-mon", "wed"]),
    )
    def test_leaves_the_rules_as_they_are(self, zone, moment, more, spans, days):
        """Not earlier; open then; the same asked again; and of two moments the later is not due sooner."""
        hours = window(*spans, days=days)

        opens = hours.next_open(moment, zone)

        assert moment <= opens <= moment + timedelta(days=9)
        assert hours.is_open(opens, zone)
        assert hours.next_open(opens, zone) == opens
        assert opens <= hours.next_open(moment + more, zone)
        begun = hours.last_begun(moment, zone)
        assert begun is not None
        assert begun < moment
        assert hours.is_open(begun, zone)


class TestBadWindows:
    @pytest.mark.parametrize(
        ("bad", "said"),
        [
            (window(), "without hours"),
            (window("9-17"), "'9-17'"),
            (window("09:00"), "'09:00'"),
            (window("25:00-26:00"), "'25:00-26:00'"),
            (window(7), "7"),
            (window("09:00-17:00", days="mo-fr"), "days = 'mo-fr'"),
            (window("09:00-17:00", days=""), "days = ''"),
            (window("09:00-17:00", days=None), "days = None"),
            (window("09:00-17:00", holidays="XX"), "holidays = 'XX'"),
            (window("09:00-17:00", holidays=("DE", "XX")), "holidays = ('DE', 'XX')"),
            (window("09:00-17:00", holidays=["25 December"]), "holidays = ['25 December']"),
            (window("09:00-17:00", zone="Europe/Atlantis"), "zone = 'Europe/Atlantis'"),
            (window("09:00-17:00", outside="later"), "outside = 'later'"),
            (
                window("09:00-17:00", days="mon", holidays=[date(2026, 1, 1) + timedelta(days=n) for n in range(6000)]),
                "does not open",
            ),
        ],
    )
    def test_say_what_is_wrong(self, bad, said):
        [(problem, remedy)] = bad.problems

        assert said in problem
        assert remedy


class TestSpreadOver:
    @given(
        st.datetimes(FIRST, LAST),
        st.sampled_from(
            [
                OFFICE,
                window("22:00-06:00", days="fri"),
                window("09:00-12:00", "11:00-13:00", "18:00-18:30"),
                window("00:30-02:30"),
            ]
        ),
        st.timedeltas(timedelta(minutes=1), timedelta(days=30)),
        st.floats(0, 1, exclude_max=True),
        st.floats(0, 1, exclude_max=True),
    )
    def test_is_open_within_the_spread_and_in_the_order_of_the_shares(self, moment, hours, spread, one, other):
        opens = hours.next_open(moment.replace(tzinfo=BERLIN).astimezone(UTC), BERLIN)
        shares = sorted(min(spread * part, spread - timedelta(seconds=1)) for part in (one, other))

        early, late = (hours.spread_over(opens, share, spread, BERLIN) for share in shares)

        assert opens <= early <= late < opens + spread
        assert hours.is_open(early, BERLIN)
        assert hours.is_open(late, BERLIN)

    def test_changes_nothing_while_it_is_open(self):
        opens, share = berlin("2026-11-25 09:00"), timedelta(minutes=95, microseconds=1000)

        assert OFFICE.spread_over(opens, share, timedelta(hours=8), BERLIN) == opens + share

    def test_counts_no_hour_twice_and_none_that_is_closed(self):
        hours, opens = window("09:00-12:00", "11:00-13:00", "18:00-22:00"), berlin("2026-11-25 09:00")

        def due(part):
            return on_the_wall(hours.spread_over(opens, timedelta(hours=12) * part, timedelta(hours=12), BERLIN))

        assert [due(part) for part in (0, 0.25, 0.5, 0.75)] == [
            "Wed 25 09:00", "Wed 25 10:45", "Wed 25 12:30", "Wed 25 19:15",
        ]  # fmt: skip
