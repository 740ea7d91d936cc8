"""What a changed definition means for the rows that are there, before anything is changed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Order
from timeline import Timeline, after, at, task
from timeline.features.plans import differ
from timeline.features.plans.differ import SAMPLES, differences, differences_of_some, runs_of_nobody
from timeline.features.sweep.verbs import sweep
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.shortcuts import start
from timeline.testing import only_timelines
from timeline.timing import LATEST

DAY = timedelta(days=1)


class Before(Timeline):
    name = "care"
    entity = "testapp.Order"

    @task(after(days=10))
    def remind(self, order): ...

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(days=20))
    def dropped(self, order): ...


class Now(Timeline):
    """It reminds three days later, drops one task and has another."""

    name = "care"
    entity = "testapp.Order"

    @task(after(days=13))
    def remind(self, order): ...

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(days=40))
    def look(self, order): ...


@pytest.fixture(autouse=True)
def _story(db, clock, now):
    clock.set(now)


@pytest.fixture
def orders(now):
    orders = [Order.objects.create(ships_at=now + 5 * DAY) for _ in range(5)]
    with only_timelines(Before):
        for order in orders:
            start(Before, order)
    return orders


def found(now):
    seen = {}
    for seen in differences([registry.timeline("care")], now=now, using="default"):  # noqa: B007 (the last of them)
        pass
    return seen.get("care")


class TestDifferencesOfSome:
    def test_are_of_the_first_and_then_of_those_behind_them(self, orders, now, monkeypatch):
        monkeypatch.setattr(differ, "PATIENCE", 60)
        with only_timelines(Now):
            asked = {"most": 4, "now": now, "using": "default"}
            first, last = differences_of_some(Now.definition, after=None, **asked)
            rest, end = differences_of_some(Now.definition, after=last, **asked)

        assert [(each.runs, each.changed) for each in (first, rest)] == [(4, 4), (1, 1)]
        assert last is not None
        assert end is None

    def test_are_of_a_quarter_where_that_takes_long(self, orders, now, monkeypatch):
        monkeypatch.setattr(differ, "PATIENCE", -1)
        with only_timelines(Now):
            first, last = differences_of_some(Now.definition, after=None, most=4, now=now, using="default")

        assert (first.runs, last is None) == (1, False)

    def test_take_as_many_statements_for_many_as_for_few(self, orders, now, django_assert_num_queries):
        with only_timelines(Now):
            with django_assert_num_queries(5):
                differences_of_some(Now.definition, after=None, most=4, now=now, using="default")
            with django_assert_num_queries(5):
                differences_of_some(Now.definition, after=None, most=400, now=now, using="default")

    def test_write_nothing(self, orders, now):
        before = list(ScheduledTask.objects.order_by("pk").values())
        with only_timelines(Now):
            differences_of_some(Now.definition, after=None, most=4, now=now, using="default")

        assert list(ScheduledTask.objects.order_by("pk").values()) == before


class TestDifferences:
    def test_are_none_where_nothing_was_changed(self, orders, now):
        with only_timelines(Before):
            differs = found(now)

        assert (differs.runs, differs.changed) == (5, 0)
        assert {name: task.unchanged for name, task in differs.tasks.items()} == {"remind": 5, "ship": 5, "dropped": 5}

    def test_are_counted_by_task_with_samples_and_are_what_is_done_then(self, orders, now):
        with only_timelines(Now):
            differs = found(now)
            tasks = differs.tasks
            untouched = list(ScheduledTask.objects.order_by("pk").values())

            assert (differs.runs, differs.changed, differs.ending) == (5, 5, 0)
            assert (tasks["remind"].moved, tasks["remind"].earliest, tasks["remind"].latest) == (5, 3 * DAY, 3 * DAY)
            assert (tasks["dropped"].cancelled, tasks["look"].new, tasks["ship"].unchanged) == (5, 5, 5)
            assert len(tasks["remind"].samples) == SAMPLES
            sample = tasks["remind"].samples[0]
            assert (sample.at, sample.then_at) == (now + 10 * DAY, now + 13 * DAY)
            assert list(ScheduledTask.objects.order_by("pk").values()) == untouched

            sweep(now=now, using="default")

            left = found(now)
            assert (left.changed, left.tasks["dropped"].orphaned) == (5, 5)
            assert (left.tasks["remind"].moved, left.tasks["look"].new) == (0, 0)
            assert ScheduledTask.objects.filter(task_key="care.look").count() == 5

    def test_name_runs_that_are_left_as_they_are(self, orders, now):
        Order.objects.filter(pk=orders[0].pk).update(ships_at=LATEST + DAY)
        with only_timelines(Now):
            differs = found(now)

        [problem] = differs.left
        assert "ships_at" in problem
        assert (differs.runs, differs.changed) == (5, 4)

    def test_take_as_many_statements_for_many_as_for_few(self, orders, now):
        def statements():
            with only_timelines(Now), CaptureQueriesContext(connection) as queries:
                found(now)
            return len(queries)

        few = statements()
        with only_timelines(Before):
            for _ in range(60):
                start(Before, Order.objects.create(ships_at=now + DAY))
        assert statements() == few

    def test_can_be_written_as_data(self, orders, now):
        with only_timelines(Now):
            data = found(now).as_data()

        assert data["tasks"]["remind"]["earliest"] == 3 * 86400
        assert data["tasks"]["look"]["samples"][0]["at"] is None


class TestRunsOfNobody:
    def test_are_those_whose_timeline_is_not_declared(self, orders):
        with only_timelines(Now):
            assert runs_of_nobody(using="default") == {}
        with only_timelines():
            assert runs_of_nobody(using="default") == {"care": 5}
