"""Slots: which moments a wall clock comes to, again and again, also where it is changed."""

import os
import random
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo, available_timezones

import pytest

from tests.timing.moments import BERLIN, berlin, utc
from timeline.features.recurring.slots import DayOfMonth, DaysOfWeek, EveryDay, Slots, slots_of

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
ALL = "ALL_CLOCK_CHANGES" in os.environ  # make slots; otherwise a sample of them.


def daily(*times):
    return Slots(EveryDay(), times)


HOURLY = Slots(EveryDay(), tuple(time(hour) for hour in range(24)), any_hour=True)
QUARTERS = Slots(
    EveryDay(), tuple(time(hour, minute) for hour in range(24) for minute in (0, 15, 30, 45)), any_hour=True
)


@cache
def clock_changes():
    """Zone and the moment before which, and within a day, its clock is changed: 1997 to 2037."""
    found = []
    names = sorted(available_timezones())
    for name in names if ALL else random.Random(7).sample(names, 40):  # noqa: S311
        zone = ZoneInfo(name)
        offsets = [
            (at := datetime(1997, 1, 1, tzinfo=UTC) + n * DAY, at.astimezone(zone).utcoffset()) for n in range(14975)
        ]
        found += [(zone, later[0]) for earlier, later in pairwise(offsets) if earlier[1] != later[1]]
    return found


def some_changes():
    changes = clock_changes()
    return changes if ALL else random.Random(7).sample(changes, 400)  # noqa: S311


def between(slots, zone, first, last):
    """All up to the last moment; beyond it is looked as well, lest one come late."""
    found = takewhile(lambda slot: slot.at <= last + 2 * DAY, islice(slots.since(first, zone), 1000))
    return [slot for slot in found if slot.at <= last]


class TestAfter:
    def test_finds_the_next_and_passes_over_this_very_moment(self):
        slots = daily(time(2))

        assert slots.after(berlin(2026, 3, 1, 1, 59), BERLIN).at == berlin(2026, 3, 1, 2)
        assert slots.after(berlin(2026, 3, 1, 2), BERLIN).at == berlin(2026, 3, 2, 2)

    def test_is_as_much_later_as_the_clock_jumped(self):
        slot = daily(time(2, 30)).after(berlin(2026, 3, 28, 12), BERLIN)

        assert slot.at == utc(2026, 3, 29, 1, 30)
        assert slot.day == date(2026, 3, 29)

    def test_takes_the_first_of_a_time_that_comes_twice(self):
        slots = daily(time(2, 30))

        first = slots.after(berlin(2026, 10, 24, 12), BERLIN).at

        assert first == utc(2026, 10, 25, 0, 30)
        assert slots.after(first, BERLIN).at == berlin(2026, 10, 26, 2, 30)

    def test_follows_real_hours_where_any_hour_will_do(self):
        found = [slot.at for slot in islice(HOURLY.since(utc(2026, 10, 24, 22), BERLIN), 6)]

        assert {later - earlier for earlier, later in pairwise(found)} == {HOUR}

    def test_has_days_of_the_week(self):
        slots = Slots(DaysOfWeek(frozenset({0, 3})), (time(6),))

        found = [slot.day for slot in islice(slots.since(utc(2026, 3, 1), UTC), 3)]

        assert found == [date(2026, 3, 2), date(2026, 3, 5), date(2026, 3, 9)]

    def test_takes_the_last_day_of_a_month_that_lacks_one(self):
        slots = Slots(DayOfMonth(31), (time(0),))

        found = [slot.day for slot in islice(slots.since(utc(2026, 1, 15), UTC), 4)]

        assert found == [date(2026, 1, 31), date(2026, 2, 28), date(2026, 3, 31), date(2026, 4, 30)]

    def test_has_no_slot_on_a_day_that_there_was_not(self):
        """Samoa had no 30 December 2011."""
        zone = ZoneInfo("Pacific/Apia")

        found = [slot.at.astimezone(zone).date() for slot in islice(daily(time(2)).since(utc(2011, 12, 29), zone), 3)]

        assert found == [date(2011, 12, 29), date(2011, 12, 31), date(2012, 1, 1)]


class TestCron:
    def test_comes_when_the_expression_says(self):
        slots, problems = slots_of("*/20 6 * * mon")

        found = [slot.at for slot in islice(slots.since(utc(2026, 3, 1), UTC), 4)]

        assert not problems
        assert found == [utc(2026, 3, 2, 6), utc(2026, 3, 2, 6, 20), utc(2026, 3, 2, 6, 40), utc(2026, 3, 9, 6)]

    def test_has_our_rule_for_a_time_that_is_skipped(self):
        slots, _problems = slots_of("30 2 * * *")

        assert slots.after(berlin(2026, 3, 28, 12), BERLIN).at == utc(2026, 3, 29, 1, 30)

    def test_may_come_once_in_four_years(self):
        slots, _problems = slots_of("0 0 29 2 *")

        assert slots.after(utc(2026, 3, 1), UTC).at == utc(2028, 2, 29)

    @pytest.mark.parametrize(
        ("expression", "said"),
        [
            ("0 0 31 2 *", "comes never"),
            ("61 * * * *", "bad minute"),
            ("0 25 * * *", "bad hour"),
            ("* * *", "has cron"),
            ("0 * * * * *", "has cron"),
            (7, "has cron"),
        ],
    )
    def test_says_what_is_wrong(self, expression, said):
        slots, [(problem, _remedy)] = slots_of(expression)

        assert slots is None
        assert said in problem

    def test_names_the_package_that_is_missing(self, monkeypatch):
        monkeypatch.setattr("timeline.features.recurring.slots.CronSim", None)

        _slots, [(_problem, remedy)] = slots_of("0 2 * * *")

        assert "django-entity-timeline[cron]" in remedy


class TestEveryClockChange:
    """In every zone, from a day before each clock change to a day after it."""

    @pytest.mark.parametrize("at", [time(2), time(2, 30)])
    def test_daily_comes_once_each_local_day(self, at):
        for zone, change in some_changes():
            slots = between(daily(at), zone, change - 3 * DAY, change + 3 * DAY)
            days = [slot.at.astimezone(zone).date() for slot in slots]

            assert days == sorted(set(days)), zone
            assert all(_is_all_there_is(earlier, later, zone) for earlier, later in pairwise(days)), zone

    @pytest.mark.parametrize(("slots", "step"), [(HOURLY, HOUR), (QUARTERS, HOUR / 4)])
    def test_any_hour_comes_once_each_real_hour(self, slots, step):
        """Where a clock is changed by a part of the step, the two beside that are less or more apart; nowhere else."""
        for zone, change in some_changes():
            found = [slot.at for slot in between(slots, zone, change - 2 * DAY, change + DAY)]
            for earlier, later in pairwise(found):
                assert later - earlier == step or _changes_by_a_part(earlier, zone, step), (zone, earlier)


def _is_all_there_is(earlier, later, zone):
    """Whether no day lies between these two, or none that there was."""
    between_them = (earlier + DAY * n for n in range(1, (later - earlier).days))
    return not any(
        (noon := datetime.combine(day, time(12), tzinfo=zone)).astimezone(UTC).astimezone(zone).date() == noon.date()
        for day in between_them
    )


def _changes_by_a_part(at, zone, step):
    """Whether a clock is changed near it by a part of the step."""
    offsets = [(at + n * step).astimezone(zone).utcoffset() for n in range(-3, 4)]
    return any((later - earlier) % step for earlier, later in pairwise(offsets))
