"""Start for many."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from tests.testapp.models import Account, Customer, Order, Parcel
from timeline import Timeline, after, at, task
from timeline.exceptions import DateOutOfRange, InvalidInput, NaiveDatetime, NotPlainJSON, UnknownTimeline, WrongEntity
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations import sets
from timeline.operations.sets import Tally
from timeline.shortcuts import enroll, start, start_many
from timeline.testing import autostart, only_timelines
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


class Sweep(Timeline):
    @task(after(days=1))
    def sweep(self):
        return None


class Upkeep(Timeline):
    entity = "testapp.Account"

    @task(at("ends_at"))
    def close(self, account):
        return None


@pytest.fixture(autouse=True)
def _story(db, clock, now):
    clock.set(now)
    with only_timelines(Delivery, Sweep, Upkeep):
        yield


@pytest.fixture
def orders(now):
    return [Order.objects.create(ships_at=now + timedelta(days=number)) for number in range(5)]


def runs_and_rows():
    runs = TimelineRun.objects.order_by("entity_label", "entity_id", "key")
    tasks = ScheduledTask.objects.order_by("entity_label", "entity_id", "task_key", "nominal_at")
    return [
        list(runs.values_list("entity_label", "entity_id", "key", "params", "started_at", "started_by", "ended_at")),
        list(tasks.values_list("entity_id", "task_key", "state", "nominal_at", "anchor", "anchor_value", "created_at")),
    ]


class TestStartMany:
    def test_writes_what_a_loop_of_start_writes(self, orders, now):
        start(Delivery, orders[1])
        given = {"key": "k", "params": {"n": [1, "é"]}, "started_at": now - timedelta(days=3)}

        with transaction.atomic():
            started = [start("delivery", order, **given).created for order in [*orders, orders[0]]]
            one_by_one = runs_and_rows()
            transaction.set_rollback(True)
        tally = start_many("delivery", [*orders, orders[0]], batch_size=2, **given)

        assert runs_and_rows() == one_by_one
        assert (tally.started, tally.again) == (sum(started), 1)

    def test_says_what_it_did_in_numbers(self, orders):
        assert start_many(Delivery, orders) == Tally(started=5, tasks=10)
        assert start_many(Delivery, orders) == Tally(again=5)

    def test_takes_a_queryset(self, orders):
        assert start_many(Delivery, Order.objects.all(), batch_size=2).started == 5

    def test_takes_a_queryset_of_children_for_the_parents_they_are(self, now):
        customers = [Customer.objects.create(ends_at=now) for _ in range(3)]
        Account.objects.create()

        assert start_many(Upkeep, Customer.objects.all(), batch_size=2).started == 3
        assert {run.entity_ref for run in TimelineRun.objects.all()} == {
            ("testapp.account", str(customer.pk)) for customer in customers
        }

    def test_takes_no_entity_for_a_system_timeline(self):
        assert start_many(Sweep, [None]).started == 1

    def test_works_when_autostart_is_off(self, orders):
        with autostart(False):
            assert start_many(Delivery, orders).started == 5

    def test_counts_from_a_field_of_each(self, orders, now):
        start_many(Delivery, orders, started_at="ships_at")

        assert list(TimelineRun.objects.order_by("started_at").values_list("started_at", flat=True)) == [
            now + timedelta(days=number) for number in range(5)
        ]

    def test_counts_from_midnight_of_a_date_in_the_zone_of_each(self, orders, now):
        Order.objects.update(due_on=now.date(), zone="Asia/Tokyo")

        start_many(Delivery, orders, started_at="due_on")

        assert {run.started_at for run in TimelineRun.objects.all()} == {datetime(2026, 2, 28, 15, tzinfo=UTC)}


class TestAFault:
    @pytest.mark.parametrize(
        ("given", "error"),
        [
            ({"timeline": "nothing"}, UnknownTimeline),
            ({"timeline": Sweep}, WrongEntity),
            ({"entities": [Parcel()]}, WrongEntity),
            ({"entities": [None]}, WrongEntity),
            ({"entities": [Order(pk=0)]}, WrongEntity),
            ({"key": "x" * 101}, InvalidInput),
            ({"params": {"at": {1, 2}}}, NotPlainJSON),
            ({"started_at": datetime(2026, 1, 1)}, NaiveDatetime),  # noqa: DTZ001 (that is the case)
            ({"started_at": "note"}, InvalidInput),
            ({"started_at": "nothing"}, InvalidInput),
            ({"started_at": "due_on"}, InvalidInput),
            ({"started_at": LATEST - timedelta(hours=1)}, DateOutOfRange),
        ],
        ids=lambda given: next(iter(given)) if isinstance(given, dict) else given.__name__,
    )
    def test_writes_nothing_of_its_batch(self, orders, given, error):
        given = {"timeline": Delivery, "entities": []} | given
        given["entities"] = [*orders, *given["entities"]]

        with transaction.atomic():
            with pytest.raises(error):
                start_many(given.pop("timeline"), given.pop("entities"), **given)
            assert not TimelineRun.objects.exists()  # The caller's transaction goes on.

    def test_of_a_field_that_is_not_set_names_the_entity(self, orders):
        Order.objects.filter(pk=orders[3].pk).update(ships_at=None)

        with pytest.raises(InvalidInput, match=f"testapp.order {orders[3].pk}") as refused:
            start_many(Delivery, orders, started_at="ships_at")

        assert refused.value.field == "started_at"

    def test_of_a_field_is_none_where_a_run_is_open(self, orders):
        start(Delivery, orders[3])
        Order.objects.filter(pk=orders[3].pk).update(ships_at=None)

        assert start_many(Delivery, orders, started_at="ships_at") == Tally(started=4, tasks=8, again=1)


class TestQueries:
    @pytest.mark.parametrize(
        ("many_orders", "few_orders", "portion"), [(100, 10, 100), (100, 90, 10)], ids=["at once", "in portions"]
    )
    @pytest.mark.parametrize("verb", [start_many, enroll])
    def test_are_as_many_for_many_as_for_few(
        self, now, statements_of, monkeypatch, verb, many_orders, few_orders, portion
    ):
        monkeypatch.setattr(sets, "PORTION", portion)

        def many(count):
            Order.objects.all().delete()
            Order.objects.bulk_create([Order(ships_at=now) for _ in range(count)])
            start_many(Delivery, list(Order.objects.all()[: count // 2]))
            return statements_of(lambda: verb(Delivery, Order.objects.all()))

        assert many(many_orders) == many(few_orders)
