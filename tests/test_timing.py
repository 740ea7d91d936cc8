"""Times relative to an anchor: calendar units on the wall clock, exact durations beside them."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from timeline.exceptions import DateOutOfRange, NaiveDatetime
from timeline.timing import (
    EARLIEST,
    LATEST,
    Offset,
    after,
    as_anchor_value,
    at,
    before,
    begins_at,
    check_time,
    day_of,
    offset_of,
)

BERLIN = ZoneInfo("Europe/Berlin")  # Clocks go forward on 29 March 2026 at 2:00, back on 25 October 2026 at 3:00.


class Named:
    """Stands for a task, as ``@task`` does."""

    def __init__(self, name):
        self.name = name


def berlin(*parts, fold=0):
    return datetime(*parts, tzinfo=BERLIN, fold=fold)


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


def first_problem(when):
    return " ".join(when.problems[0])


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


class TestAfter:
    def test_counts_from_the_start_of_the_run_without_an_anchor(self):
        when = after(days=25)

        assert (when.verb, when.anchor, when.offset) == ("after", "start", Offset(days=25))
        assert (when.field_name, when.predecessor_name, when.problems) == ("", "", ())

    def test_counts_from_a_field_of_the_entity(self):
        when = after("trial_ends_at", days=2)

        assert (when.anchor, when.field_name, when.predecessor_name) == (
            "field:trial_ends_at",
            "trial_ends_at",
            "",
        )

    def test_counts_from_the_end_of_a_task(self):
        expire = Named("expire")

        when = after(expire, days=2)

        assert (when.anchor, when.field_name, when.predecessor_name) == ("end:expire", "", "expire")
        assert when.predecessor is expire

    @pytest.mark.parametrize(
        ("when", "offset"),
        [
            pytest.param(after(), Offset(), id="nothing"),
            pytest.param(after(timedelta(days=1)), Offset(exact=timedelta(days=1)), id="a timedelta alone"),
            pytest.param(after("x", timedelta(days=1)), Offset(exact=timedelta(days=1)), id="a timedelta second"),
            pytest.param(
                after(timedelta(days=1), timedelta(hours=1)), Offset(exact=timedelta(hours=25)), id="two timedeltas"
            ),
            pytest.param(after(weeks=2, days=1), Offset(days=15), id="weeks are days"),
            pytest.param(after(years=1, months=2), Offset(months=14), id="years are months"),
            pytest.param(after(hours=1.5), Offset(exact=timedelta(minutes=90)), id="parts of an hour"),
            pytest.param(
                after(timedelta(hours=1), days=1, minutes=2, seconds=3),
                Offset(days=1, exact=timedelta(hours=1, minutes=2, seconds=3)),
                id="both kinds",
            ),
        ],
    )
    def test_takes_calendar_units_and_exact_ones_apart(self, when, offset):
        assert when.offset == offset
        assert when.problems == ()

    @pytest.mark.parametrize(
        ("when", "problem"),
        [
            (after(days=-1), "negative distance"),
            (after(months=-1), "negative distance"),
            (after(hours=-1), "negative distance"),
            (after(timedelta(seconds=-1)), "negative distance"),
            (after(days=1.5), "days=1.5 is not a whole number"),
            (after(days=True), "days=True is not a whole number"),
            (after(weeks="2"), "weeks='2' is not a whole number"),
            (after(years=None), "years=None is not a whole number"),
            (after(hours="2"), "make no duration"),
            (after(hours=float("nan")), "make no duration"),
            (after(hours=float("inf")), "make no duration"),
            (after("trial_ends_at", 5), "make no duration"),
            (after(timedelta.max, hours=1), "make no duration"),
            (after("trial ends"), "'trial ends' is not the name of a field"),
            (after("owner.ends_at"), "'owner.ends_at' is not the name of a field"),
            (after(""), "'' is not the name of a field"),
            (after(5), "after(5) names no anchor"),
            (after(Named(None)), "names no anchor"),
        ],
    )
    def test_notes_what_is_wrong_with_it(self, when, problem):
        """The class of the timeline reports it with its name."""
        assert problem in first_problem(when)
        assert all(remedy for _problem, remedy in when.problems)


class TestBefore:
    def test_counts_back_from_a_field_of_the_entity(self):
        when = before("trial_ends_at", timedelta(hours=1), months=1, days=5)

        assert (when.verb, when.field_name) == ("before", "trial_ends_at")
        assert when.offset == Offset(months=-1, days=-5, exact=-timedelta(hours=1))
        assert when.problems == ()

    @pytest.mark.parametrize(
        ("when", "problem"),
        [
            (before("trial_ends_at"), "before() without a distance"),
            (before("trial_ends_at", days=0), "before() without a distance"),
            (before("trial_ends_at", days=-5), "negative distance"),
            (before("trial_ends_at", days=1.5), "days=1.5 is not a whole number"),
            (before("trial-ends", days=5), "'trial-ends' is not the name of a field"),
            (before(Named("expire"), days=5), "before() counts back from a field of the entity only"),
            (before(timedelta(days=5), days=1), "before() counts back from a field of the entity only"),
        ],
    )
    def test_notes_what_is_wrong_with_it(self, when, problem):
        assert problem in first_problem(when)
        assert all(remedy for _problem, remedy in when.problems)


class TestAt:
    def test_is_the_time_that_a_field_holds(self):
        when = at("trial_ends_at")

        assert (when.verb, when.field_name, when.offset, when.problems) == ("at", "trial_ends_at", Offset(), ())

    @pytest.mark.parametrize(
        ("when", "problem"),
        [
            (at("trial ends"), "'trial ends' is not the name of a field"),
            (at(Named("expire")), "at() takes the name of a field"),
            (at(timedelta(days=1)), "at() takes the name of a field"),
        ],
    )
    def test_notes_what_is_wrong_with_it(self, when, problem):
        assert problem in first_problem(when)
        assert all(remedy for _problem, remedy in when.problems)


class TestResolve:
    def test_computes_the_time_from_the_value_of_the_anchor(self):
        assert before("trial_ends_at", days=5).resolve(utc(2026, 3, 31, 9), UTC) == utc(2026, 3, 26, 9)
        assert after(days=25).resolve(utc(2026, 3, 1, 9), UTC) == utc(2026, 3, 26, 9)
        assert at("trial_ends_at").resolve(utc(2026, 3, 31, 9), UTC) == utc(2026, 3, 31, 9)

    @pytest.mark.parametrize(
        ("when", "field"),
        [
            (after("trial_ends_at", years=7000), "trial_ends_at"),
            (before("trial_ends_at", years=100), "trial_ends_at"),
            (after(years=7000), "start"),
            (after(Named("expire"), years=7000), "end:expire"),
        ],
    )
    def test_names_the_anchor_that_a_date_out_of_range_came_from(self, when, field):
        with pytest.raises(DateOutOfRange) as caught:
            when.resolve(utc(2026, 3, 1), UTC)

        assert caught.value.field == field
        assert str(caught.value).startswith(f"{field}: ")


class TestWhenDescribe:
    @pytest.mark.parametrize(
        ("when", "text"),
        [
            (after(), "at the start of the run"),
            (after(days=25), "25 days after the start of the run"),
            (after("trial_ends_at", hours=1), "1 hour after trial_ends_at"),
            (before("trial_ends_at", days=5), "5 days before trial_ends_at"),
            (at("trial_ends_at"), "at trial_ends_at"),
            (after(Named("expire"), days=2), "2 days after expire completes"),
            (after(Named("expire")), "when expire completes"),
        ],
    )
    def test_says_it_in_words(self, when, text):
        assert when.describe() == text


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
        assert begins_at(date(2026, 6, 1), midnight)
        assert not begins_at(date(2026, 6, 2), midnight)

    @pytest.mark.parametrize(
        ("zone", "day"),
        [("Pacific/Kiritimati", 2), ("Pacific/Auckland", 2), ("Etc/GMT+12", 1), ("Pacific/Honolulu", 1)],
    )
    def test_that_may_be_the_midnight_of_two_days_tells_neither(self, zone, day):
        midnight = as_anchor_value(date(2026, 6, day), ZoneInfo(zone), "due_on")

        assert day_of(midnight) is None
        assert begins_at(date(2026, 6, 1), midnight)
        assert begins_at(date(2026, 6, 2), midnight)

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
        with pytest.raises(NaiveDatetime, match=r"^at: "):
            check_time("at", value)


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
