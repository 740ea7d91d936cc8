"""Enroll: start a timeline for those who were there before it, and pass over those who have a run."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Order
from timeline import Timeline, after, at, task
from timeline.exceptions import DateOutOfRange
from timeline.models import TimelineRun
from timeline.operations.sets import Tally
from timeline.shortcuts import enroll, leave, start
from timeline.testing import only_timelines
from timeline.timing import LATEST


class Delivery(Timeline):
    entity = "testapp.Order"
    time_zone = "zone"

    @task(after(days=1))
    def pack(self, order):
        return None

    @task(at("ships_at"))
    def ship(self, order):
        return None

    @task(after(ship, days=1))
    def ask(self, order):
        return None


@pytest.fixture(autouse=True)
def _story(db, clock, now):
    clock.set(now)
    with only_timelines(Delivery):
        yield


@pytest.fixture
def orders(now):
    return [Order.objects.create(ships_at=now + timedelta(days=number)) for number in range(5)]


class TestEnroll:
    def test_starts_those_who_have_no_open_run(self, orders):
        start(Delivery, orders[0])
        start(Delivery, orders[1])
        leave(Delivery, orders[1], reason="moved house")

        assert enroll(Delivery, Order.objects.all(), batch_size=2) == Tally(started=4, tasks=8, again=1)
        assert enroll(Delivery, Order.objects.all()) == Tally(again=5)

    def test_leaves_those_who_have_had_one_if_told_so(self, orders):
        start(Delivery, orders[0])
        leave(Delivery, orders[0], reason="moved house")

        assert enroll(Delivery, Order.objects.all(), once=True) == Tally(started=4, tasks=8, again=1)

    def test_tells_runs_apart_by_their_key(self, orders):
        start(Delivery, orders[0], key="a")

        assert enroll(Delivery, Order.objects.all(), key="b").started == 5

    def test_takes_a_list_too(self, orders):
        assert enroll(Delivery, orders[:2], started_at="ships_at").started == 2

    def test_does_nothing_for_none(self, db):
        assert enroll(Delivery, Order.objects.none()) == Tally()

    def test_carries_on_where_a_fault_stopped_it(self, orders):
        Order.objects.filter(pk=orders[4].pk).update(ships_at=LATEST + timedelta(days=1))
        with pytest.raises(DateOutOfRange):
            enroll(Delivery, Order.objects.all(), batch_size=2)
        assert TimelineRun.objects.count() == 4

        Order.objects.filter(pk=orders[4].pk).update(ships_at=None)

        assert enroll(Delivery, Order.objects.all(), batch_size=2) == Tally(started=1, tasks=1, again=4)


class TestQueries:
    def test_read_no_more_than_a_batch_at_a_time(self, orders):
        """Keys only, in their order, with a limit: whatever the queryset's own order is."""
        with CaptureQueriesContext(connection) as queries:
            enroll(Delivery, Order.objects.order_by("note"), batch_size=2)

        pages = [query["sql"] for query in queries if "LIMIT 2" in query["sql"]]
        assert len(pages) == 4  # The last finds nobody.
        assert not any("ships_at" in sql or "note" in sql for sql in pages)
