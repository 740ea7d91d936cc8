"""Starts by the clock, as declared: what is wrong with them is an error at start, with class, word and remedy."""

from datetime import timedelta

import pytest

from timeline import Timeline, after, created, cron, daily, hourly, monthly, task, weekly
from timeline.exceptions import DefinitionError


def declare(starts_on, **options):
    takes = (lambda self, order: None) if "entity" in options else (lambda self: None)
    takes.__name__ = "go"
    return type("Nightly", (Timeline,), {"starts_on": starts_on, "go": task(after())(takes), **options}).definition


class TestWords:
    @pytest.mark.parametrize(
        "start",
        [
            daily("02:00"),
            daily("23:59", zone="Europe/Berlin", once_per="day", overlap="allow", catch_up="all", within=timedelta(7)),
            hourly(),
            hourly(59),
            weekly("mon 06:00"),
            weekly("Mon,THU 06:00"),
            monthly(31, "00:00"),
            cron("*/15 8-18 * * mon-fri"),
        ],
    )
    def test_start_by_the_clock(self, start):
        assert declare(start).recurring is start

    def test_stand_beside_events(self):
        start = daily("02:00")

        assert declare((start, "books.reopened")).recurring is start

    @pytest.mark.parametrize(
        ("start", "said"),
        [
            (lambda: daily("25:00"), "has daily\\('25:00'\\)"),
            (lambda: daily("2:00"), "has daily"),
            (lambda: daily(2), "has daily\\(2\\)"),
            (lambda: hourly(60), "has hourly\\(60\\)"),
            (lambda: hourly(True), "has hourly\\(True\\)"),
            (lambda: weekly("06:00"), "has weekly"),
            (lambda: weekly("someday 06:00"), "has weekly"),
            (lambda: weekly("mon"), "has weekly"),
            (lambda: monthly(0, "06:00"), "has monthly"),
            (lambda: monthly(32, "06:00"), "has monthly"),
            (lambda: monthly(1, "24:00"), "has monthly"),
            (lambda: cron("0 0 31 2 *"), "comes never"),
            (lambda: cron("0 0 31 2"), "has cron"),
            (lambda: daily("02:00", zone="Berlin/Europe"), "zone 'Berlin/Europe', which is not known"),
            (lambda: daily("02:00", zone=""" ../x"""), "which is not known"),
            (lambda: daily("02:00", once_per="year"), "once_per='year'"),
            (lambda: daily("02:00", overlap="wait"), "overlap='wait'"),
            (lambda: daily("02:00", catch_up="some"), "catch_up='some'"),
            (lambda: daily("02:00", within=timedelta(0)), "within=datetime.timedelta\\(0\\)"),
            (lambda: daily("02:00", within=7), "within=7"),
            (lambda: daily("02:00", catch_up="all"), "catch_up='all' and overlap='skip'"),
        ],
    )
    def test_are_refused_with_the_class_where_they_are_wrong(self, start, said):
        with pytest.raises(DefinitionError, match=f"Nightly.*{said}"):
            declare(start())

    @pytest.mark.parametrize(
        ("starts_on", "options", "said"),
        [
            (daily("02:00"), {"entity": "testapp.Order"}, "has an entity"),
            (daily("02:00"), {"once": True}, "has once"),
            (daily("02:00"), {"key": "day"}, "has no payload"),
            ((daily("02:00"), hourly()), {}, "in two ways"),
            ((daily("02:00"), created()), {}, "no entity"),
        ],
    )
    def test_are_refused_where_they_contradict_the_class(self, starts_on, options, said):
        with pytest.raises(DefinitionError, match=said):
            declare(starts_on, **options)
