"""Many emit at once for one burst, which none of them has locked as a whole: there is one row, and it has all events."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connections, transaction

from tests.testapp.models import Invoice, Order
from timeline import Debounce, Timeline, task
from timeline.models import ScheduledTask
from timeline.shortcuts import emit, emit_many
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = 8
ROUNDS = 5


class Totals(Timeline):
    entity = "testapp.Order"

    @task(debounce=Debounce("invoice.edited", quiet=timedelta(hours=1), of="testapp.Invoice", by="order"))
    def total(self, order): ...


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(Totals):
        yield


def together(*works):
    barrier = Barrier(len(works))

    def work(one):
        try:
            barrier.wait()
            with transaction.atomic():
                one()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work, one) for one in works]:
            done.result()


class TestBursts:
    def test_are_begun_once_by_many(self):
        for _round in range(ROUNDS):
            order = Order.objects.create()
            invoices = [Invoice.objects.create(order=order) for _number in range(AT_ONCE)]
            together(*(lambda one=one: emit("invoice.edited", one) for one in invoices))

            [row] = ScheduledTask.objects.for_entity(order)
            assert row.payload["burst"]["events"] == AT_ONCE
            assert row.log.count() <= AT_ONCE - 1

    def test_are_joined_by_many_in_any_order(self):
        for _round in range(ROUNDS):
            orders = [Order.objects.create() for _number in range(20)]
            several = [[Invoice.objects.create(order=order).pk for order in orders] for _number in range(4)]
            for _time in range(2):
                together(
                    *(
                        lambda keys=keys: emit_many("invoice.edited", Invoice.objects.filter(pk__in=keys))
                        for keys in several
                    )
                )

            rows = [ScheduledTask.objects.for_entity(order).get() for order in orders]
            assert {row.payload["burst"]["events"] for row in rows} == {8}
