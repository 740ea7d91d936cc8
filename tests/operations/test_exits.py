"""Exits recorded since a run began, whether or not any code saw them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Customer, Order
from timeline import Timeline, after, task
from timeline.models import Event, TimelineRun, ref_of
from timeline.operations.leave import exits_since

HOUR = timedelta(hours=1)


class Delivery(Timeline):
    entity = "testapp.Order"
    exits = {"order.closed": "closed", "order.lost": "lost"}

    @task(after(days=1))
    def ship(self, order): ...


class Visit(Timeline):
    entity = "testapp.Order"
    exits = {"order.seen": "seen"}

    @task(after(days=1))
    def go(self, order): ...


class Survey(Timeline):
    """Ends by itself only."""

    entity = "testapp.Order"

    @task(after(days=1))
    def ask(self, order): ...


class Care(Timeline):
    entity = "testapp.Customer"
    exits = {"order.closed": "left"}

    @task(after(days=1))
    def call(self, customer): ...


@pytest.fixture
def begin(now):
    """Begin a run of an entity, recorded now; its times count from long ago."""

    def begun(timeline, entity):
        label, key = ref_of(entity, timeline.definition.label)
        columns = {"timeline": timeline.definition.name, "started_at": now - 900 * HOUR, "recorded_at": now}
        return TimelineRun.objects.create(entity_label=label, entity_id=key, **columns), timeline.definition

    return begun


@pytest.fixture
def record(now):
    """Record an event past all code of ours, an hour later: ``record("order.closed", order, …)``."""

    def recorded(name, entity, *, hours=1, happened=None, label=""):
        ref = ref_of(entity, label)
        at = now + hours * HOUR
        return Event.objects.create(
            name=name, entity_label=ref.label, entity_id=ref.id, occurred_at=happened or at, recorded_at=at
        )

    return recorded


class TestExitsSince:
    def test_tells_by_which_exit_each_ends(self, begin, record, db):
        orders = Order.objects.bulk_create([Order() for _ in range(3)])
        runs = [begin(Delivery, order) for order in orders]
        record("order.closed", orders[0])
        record("order.lost", orders[2])

        assert exits_since(runs, using="default") == {runs[0][0].pk: "closed", runs[2][0].pk: "lost"}

    def test_goes_by_when_it_was_recorded_whenever_it_happened(self, begin, record, order, now):
        run = begin(Delivery, order)
        record("order.closed", order, hours=-1, happened=now + HOUR)
        assert exits_since([run], using="default") == {}

        record("order.closed", order, hours=1, happened=now - HOUR)

        assert exits_since([run], using="default") == {run[0].pk: "closed"}

    def test_goes_by_the_order_of_ids_where_both_were_recorded_at_once(self, begin, record, order):
        record("order.closed", order, hours=0)
        run = begin(Delivery, order)
        assert exits_since([run], using="default") == {}

        record("order.closed", order, hours=0)

        assert exits_since([run], using="default") == {run[0].pk: "closed"}

    def test_passes_over_what_is_an_exit_of_another_timeline_or_entity(self, begin, record, order):
        run, other = begin(Delivery, order), begin(Visit, order)
        record("order.seen", order)
        record("order.closed", Order.objects.create())

        assert exits_since([run, other], using="default") == {other[0].pk: "seen"}

    def test_finds_what_is_recorded_under_another_name_of_the_entity(self, begin, record, db):
        customer = Customer.objects.create()
        run = begin(Care, customer)
        record("order.closed", customer, label="testapp.account")

        assert exits_since([run], using="default") == {run[0].pk: "left"}

    def test_asks_once_for_all_and_not_at_all_where_no_timeline_has_an_exit(self, begin, db, django_assert_num_queries):
        orders = Order.objects.bulk_create([Order() for _ in range(20)])
        runs, others = [begin(Delivery, order) for order in orders], [begin(Survey, order) for order in orders]

        with django_assert_num_queries(1):
            exits_since([*runs, *others], using="default")
        with django_assert_num_queries(0):
            assert exits_since(others, using="default") == {}
