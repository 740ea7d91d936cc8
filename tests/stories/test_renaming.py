"""A task is renamed while runs are open: nobody is reminded twice, and old and new workers share the rows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.models import ScheduledTask
from timeline.shortcuts import start
from timeline.testing import only_timelines

DAY = timedelta(days=1)
REMINDED = []


class Before(Timeline):
    name = "care"
    entity = "testapp.Order"

    @task(after(days=10))
    def remind(self, order):
        REMINDED.append(("old", order.pk))

    @task(after(days=20))
    def close(self, order): ...


class Renamed(Timeline):
    name = "care"
    entity = "testapp.Order"

    @task(after(days=10), was="remind")
    def remind_by_mail(self, order):
        REMINDED.append(("new", order.pk))

    @task(after(days=20))
    def close(self, order): ...


class Forgotten(Timeline):
    """The same without ``was``."""

    name = "care"
    entity = "testapp.Order"

    @task(after(days=10))
    def remind_by_mail(self, order):
        REMINDED.append(("new", order.pk))

    @task(after(days=20))
    def close(self, order): ...


@pytest.fixture
def orders(db, clock, now):
    """One that was reminded before the deploy, and one that is to be after it."""
    REMINDED.clear()
    first, second = Order.objects.create(), Order.objects.create()
    with only_timelines(Before):
        clock.set(now)
        start(Before, first)
        clock.set(now + 5 * DAY)
        start(Before, second)
        clock.set(now + 11 * DAY)
        clock.run_due()
    return first, second


def swept(moment):
    begin_round(using="default")
    while sweep(now=moment, using="default").left:
        pass


class TestTheDeploy:
    def test_reminds_each_once(self, orders, clock, now):
        first, second = orders
        with only_timelines(Renamed):
            swept(now + 11 * DAY)
            clock.set(now + 16 * DAY)
            clock.run_due()

        assert [("old", first.pk), ("new", second.pk)] == REMINDED
        assert ScheduledTask.objects.filter(state="cancelled").count() == 0

    def test_may_go_back_and_forth(self, orders, clock, now):
        first, second = orders
        for timeline in (Renamed, Before, Renamed, Before):
            with only_timelines(timeline):
                swept(now + 11 * DAY)
        with only_timelines(Renamed):
            third = Order.objects.create()
            start(Renamed, third)
        with only_timelines(Before):
            clock.set(now + 25 * DAY)
            clock.run_due()

        assert [("old", first.pk), ("old", second.pk), ("old", third.pk)] == REMINDED
        assert ScheduledTask.objects.filter(state="cancelled").count() == 0

    def test_reminds_again_where_nobody_says_what_it_was(self, orders, clock, now):
        first, _second = orders
        with only_timelines(Forgotten):
            swept(now + 11 * DAY)
            clock.run_due()

        assert ("new", first.pk) in REMINDED
