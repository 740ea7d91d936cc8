"""The hours of a day of the list: what is due at nine tomorrow; days on which the clock is changed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import LIST, text_of
from tests.admin.test_list import shown, strip
from timeline.admin.list_query import bounds, hour_bounds
from timeline.lifecycle import FINAL, State

MATCHING = reverse("admin:timeline_scheduledtask_matching")
HOUR = timedelta(hours=1)
TOMORROW = "2026-03-02"


def hours(response):
    return {hour.hour: hour for hour in response.context["hours"]}


class TestHourBounds:
    @pytest.mark.parametrize(
        "zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Asia/Kathmandu"]
    )
    @pytest.mark.parametrize(
        "day", ["2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"]
    )
    def test_cover_a_day_and_none_twice(self, zone, day):
        day, zone = date.fromisoformat(day), ZoneInfo(zone)
        spans = [hour_bounds(day, hour, zone) for hour in range(24)]

        assert (spans[0][0], spans[-1][1]) == bounds(day, zone)
        assert all(one[1] == other[0] for one, other in pairwise(spans))
        assert all(begin <= end for begin, end in spans)

    def test_are_as_long_as_what_the_clock_shows_twice(self):
        berlin = ZoneInfo("Europe/Berlin")
        begin, end = hour_bounds(date(2026, 10, 25), 2, berlin)

        assert (begin, end) == (datetime(2026, 10, 25, 0, tzinfo=UTC), datetime(2026, 10, 25, 2, tzinfo=UTC))

    def test_are_empty_where_the_clock_passes_over(self):
        begin, end = hour_bounds(date(2026, 3, 29), 2, ZoneInfo("Europe/Berlin"))

        assert begin == end

    def test_are_all_empty_of_a_day_that_was_left_out(self):
        apia = ZoneInfo("Pacific/Apia")

        assert all(begin >= end for begin, end in (hour_bounds(date(2011, 12, 30), hour, apia) for hour in range(24)))


class TestHours:
    def test_are_not_shown_before_a_day_is_chosen(self, operator, about, order):
        about(order)

        response = operator.get(LIST, {"hour": "9"})

        assert response.context["hours"] == []
        assert "Hour" not in {chip.name for chip in response.context["chips"]}

    def test_say_what_goes_out_tomorrow_at_nine(self, operator, about, order):
        """Now is nine."""
        at_nine = [about(order, 24), about(order, 24.9)]
        about(order, 25)
        about(order, 0)

        day = operator.get(LIST + strip(operator.get(LIST))[TOMORROW].where)
        assert {hour: each.due for hour, each in hours(day).items() if each.due} == {9: 2, 10: 1}
        assert "09:00–10:00: 2 tasks" in text_of(day)
        response = operator.get(LIST + hours(day)[9].where)

        assert shown(response) == [row.pk for row in at_nine]
        assert hours(response)[9].is_chosen
        assert hours(response)[9].where == f"?day={TOMORROW}"
        assert hours(response)[10].due == 1

    def test_go_by_the_clock_of_the_site(self, operator, about, order, settings):
        settings.TIME_ZONE = "Europe/Berlin"
        about(order, 24)

        response = operator.get(LIST, {"day": TOMORROW})

        assert [hour for hour, each in hours(response).items() if each.due] == [10]

    def test_have_midnight(self, operator, about, order):
        row = about(order, 15)

        response = operator.get(LIST + hours(operator.get(LIST, {"day": TOMORROW}))[0].where)

        assert response.context["question"].hour == 0
        assert shown(response) == [row.pk]
        assert "00:00–01:00" in text_of(response)

    def test_leave_with_the_day(self, operator, about, order):
        about(order, 24)

        response = operator.get(LIST, {"day": TOMORROW, "hour": "9", "timeline": "care"})

        without = {chip.name: chip.without for chip in response.context["chips"]}
        assert without == {
            "Day": "?timeline=care",
            "Hour": f"?timeline=care&day={TOMORROW}",
            "Timeline": f"?day={TOMORROW}&hour=9",
        }
        assert strip(response)["2026-03-03"].where == "?timeline=care&day=2026-03-03"
        assert '<input type="hidden" name="hour" value="9">' in text_of(response)

    @pytest.mark.parametrize("hour", ["24", "-1", "9.5", "nine", "٩", "", "09"])
    def test_are_left_out_where_they_make_no_sense(self, operator, about, order, hour):
        row = about(order, 24)

        assert shown(operator.get(LIST, {"day": TOMORROW, "hour": hour})) == [row.pk]

    @pytest.mark.parametrize("state", [*State, "ended", "all", "open", "overdue"])
    def test_count_what_the_list_shows(self, operator, about, order, state):
        side = -24 if state == "ended" or state in FINAL else 0
        for each in State:
            about(order, side, state=each)
        day = "2026-02-28" if side else "2026-03-01"

        response = operator.get(LIST, {"state": state, "day": day})
        hour = hours(response)[9]

        assert hour.due == len(shown(response)) == len(shown(operator.get(LIST + hour.where)))

    def test_are_there_for_a_day_ahead_in_states_that_nothing_ahead_is_in(self, operator, about, order):
        response = operator.get(LIST, {"state": "active", "day": TOMORROW})

        assert sum(hour.due for hour in hours(response).values()) == 0

    def test_stop_counting_where_there_are_very_many(self, operator, about, order, monkeypatch):
        monkeypatch.setattr("timeline.admin.strip.MAX_COUNTED", 3)
        for _ in range(5):
            about(order, 24)

        response = operator.get(LIST, {"day": TOMORROW})

        assert (hours(response)[9].due, hours(response)[9].is_more) == (3, True)
        assert "09:00–10:00: 3 tasks or more" in text_of(response)

    def test_count_only_what_is_seen(self, browse, person, about):
        staff = person("staff", is_staff=True)
        about(staff, 24, task_key="account.welcome")
        about(person("ada"), 24, task_key="account.welcome")

        assert hours(browse(staff).get(LIST, {"day": TOMORROW}))[9].due == 1

    def test_narrow_down_what_is_done_with_all_that_match(self, operator, about, order):
        about(order, 24)
        about(order, 25)

        assert "1 task matches" in text_of(operator.get(MATCHING, {"day": TOMORROW, "hour": "9"}))

    def test_cost_one_statement(self, operator, about, order):
        for at in range(24):
            about(order, at)
        with CaptureQueriesContext(connection) as without:
            operator.get(LIST)
        with CaptureQueriesContext(connection) as with_hours:
            operator.get(LIST, {"day": "2026-03-01"})

        assert len(with_hours) == len(without) + 1
