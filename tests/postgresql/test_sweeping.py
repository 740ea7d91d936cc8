"""Sweeps beside others: other sweeps, and whoever holds an entity."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections, transaction

from tests.postgresql.races import now
from tests.testapp.models import Order
from timeline import Timeline, at, created, task
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.models import ScheduledTask, Sweep, TimelineRun
from timeline.operations.start import start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(at("ships_at"))
    def ship(self, order): ...


class Welcome(Timeline):
    entity = "testapp.Order"
    starts_on = created()

    @task(at("ships_at"))
    def greet(self, order): ...


@pytest.fixture
def elsewhere():
    """Call something on a connection of its own, and give its result within ten seconds."""
    with ThreadPoolExecutor() as threads:

        def call(function):
            def closing():
                try:
                    return function()
                finally:
                    connections.close_all()

            return threads.submit(closing).result(timeout=120)

        yield call


def drift(count):
    """Have so many runs whose orders were updated behind their back; give the orders."""
    moment = now()
    orders = Order.objects.bulk_create([Order(ships_at=moment + timedelta(days=1)) for _ in range(count)])
    for order in orders:
        start(timeline="delivery", entity=order, key="", params={}, started_at=None, now=moment, using="default")
    Order.objects.update(ships_at=moment + timedelta(days=2))
    return orders


def drifted():
    """Keys of the orders whose rows still have the old time."""
    soon = now() + timedelta(days=1, hours=12)
    return sorted(int(row.entity_id) for row in ScheduledTask.objects.filter(scheduled_at__lt=soon))


class TestSweep:
    def test_leaves_a_part_that_another_sweep_has(self, elsewhere):
        with only_timelines(Delivery):
            drift(2)
            sweep(size=1, now=now(), using="default")

            with transaction.atomic():
                Sweep.objects.select_for_update().get()
                beside = elsewhere(lambda: sweep(now=now(), using="default"))

        assert beside == (0, 0, 0, False)

    def test_waits_for_nobody_who_holds_an_entity(self, elsewhere):
        with only_timelines(Delivery):
            orders = drift(3)

            with transaction.atomic():
                Order.objects.select_for_update().get(pk=orders[1].pk)
                swept = elsewhere(lambda: sweep(now=now(), using="default"))
                left = drifted()
            begin_round(using="default")
            elsewhere(lambda: sweep(now=now(), using="default"))
            begin_round(using="default")
            sweep(now=now(), using="default")

        assert (swept.mended, left) == (2, [orders[1].pk])
        assert drifted() == []

    def test_mends_each_once_where_several_are_at_it(self, elsewhere):
        with only_timelines(Delivery):
            drift(40)
            with ThreadPoolExecutor() as threads:
                swept = [part for parts in threads.map(lambda _: whole(), range(4)) for part in parts]

        assert sum(part.mended for part in swept) == 40
        assert drifted() == []

    def test_starts_one_run_beside_whoever_starts_it_too(self, elsewhere):
        """The row is committed, and the signal that starts its run is on its way."""
        with only_timelines(Welcome):
            sweep(now=now(), using="default")
            sweep(now=now(), using="default")
            [order] = Order.objects.bulk_create([Order(ships_at=now() + timedelta(days=1))])
            begin_round(using="default")
            with transaction.atomic():
                start(timeline="welcome", entity=order, key="", params={}, started_at=None, now=now(), using="default")
                swept = elsewhere(whole)

        assert sum(part.started for part in swept) == 0
        assert TimelineRun.objects.count() == 1


def whole():
    """Sweep in small steps until nothing is left, on this thread's connection."""
    done = []
    try:
        while (swept := sweep(size=3, now=now(), using="default")).left:
            done.append(swept)
    finally:
        connections.close_all()
    return done
