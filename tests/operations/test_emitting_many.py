"""Emit for many: what ``emit`` does for each, in a fixed number of statements."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from project.accounts.models import User
from tests.asking import sample
from tests.databases import VENDOR
from tests.machines import Booking
from tests.operations.many import TIMELINES, Delivery
from tests.testapp.models import Country, Customer, Order, Parcel, Plan
from timeline.exceptions import (
    DateOutOfRange,
    InvalidInput,
    KeyConflict,
    NaiveDatetime,
    NotPlainJSON,
    WrongEntity,
)
from timeline.lifecycle import State
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.models.entities import EntityRef
from timeline.operations import emit as operations_emit
from timeline.operations.sets import Tally, pages
from timeline.shortcuts import emit, emit_many, start, start_many
from timeline.signals import runs_entered, work_due
from timeline.testing import only_timelines
from timeline.timing import LATEST


@pytest.fixture(autouse=True)
def _story(db, clock, now):
    clock.set(now)
    with only_timelines(*TIMELINES):
        yield


@pytest.fixture
def orders(now):
    return [Order.objects.create(ships_at=now + timedelta(days=number)) for number in range(4)]


class TestEmitMany:
    def test_says_what_it_did_in_numbers(self, orders):
        tally = emit_many("order.placed", orders, key="k")

        assert tally == Tally(recorded=4, started=12, tasks=12)
        assert emit_many("order.placed", orders, key="k") == Tally(again=4)
        assert emit_many("order.closed", orders) == Tally(recorded=4, ended=8, cancelled=12)

    def test_takes_any_iterable_and_asks_it_once(self, orders):
        assert emit_many("order.placed", (order for order in orders), batch_size=3).recorded == 4

    def test_does_nothing_for_none(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert emit_many("order.placed", []) == Tally()

    def test_takes_a_queryset_page_by_page(self, orders):
        tally = emit_many("order.placed", Order.objects.order_by("-ships_at"), batch_size=3)

        assert tally.recorded == 4
        assert {event.entity_id for event in Event.objects.all()} == {str(order.pk) for order in orders}

    def test_takes_each_entity_of_a_queryset_once_though_a_join_repeats_it(self, user):
        for _ in range(3):
            Plan.objects.create(user=user)
        repeated = User.objects.filter(plan__isnull=False)
        assert repeated.count() == 3

        assert emit_many("user.seen", repeated, batch_size=2).recorded == 1

    def test_leaves_out_what_was_deleted_between_its_reading_and_its_lock(self, orders, now):
        def while_somebody_deletes():
            for batch in pages(Order.objects.all(), Order, 10, using="default"):
                Order.objects.filter(pk=orders[0].pk).delete()
                yield batch

        tally = operations_emit.emit_many(
            name="order.placed",
            batches=while_somebody_deletes(),
            key="",
            payload={},
            actor="",
            occurred_at=None,
            clock=lambda _using: now,
        )

        assert tally.recorded == 3

    def test_announces_what_is_due_at_once(self, orders, django_capture_on_commit_callbacks):
        heard = []
        work_due.connect(lambda **given: heard.append(given["using"]), weak=False, dispatch_uid="heard")

        with django_capture_on_commit_callbacks(execute=True):
            emit_many("order.placed", orders)
        work_due.disconnect(dispatch_uid="heard")

        assert heard == ["default"]


class TestEntitiesGivenTwice:
    def test_have_two_events_without_a_key(self, orders):
        tally = emit_many("order.reopened", [orders[0], orders[1], orders[0]])

        assert (tally.recorded, tally.started, tally.ended) == (3, 3, 1)
        assert TimelineRun.objects.open().for_entity(orders[0]).count() == 1

    def test_have_one_with_a_key(self, orders):
        assert emit_many("order.placed", [orders[0]] * 3, key="k") == Tally(recorded=1, again=2, started=3, tasks=3)


class TestAFault:
    def test_of_the_input_writes_nothing(self, orders):
        for given, error in [
            ({"payload": {"at": object()}}, NotPlainJSON),
            ({"payload": []}, InvalidInput),
            ({"key": "x" * 201}, InvalidInput),
            ({"batch_size": 0}, InvalidInput),
            ({"batch_size": 10_001}, InvalidInput),
            ({"batch_size": True}, InvalidInput),
            ({"occurred_at": LATEST.replace(tzinfo=None)}, NaiveDatetime),
        ]:
            with pytest.raises(error):
                emit_many("order.placed", orders, **given)

        assert not Event.objects.exists()

    @pytest.mark.parametrize(
        "entities",
        [
            lambda: Order.objects.all()[:2],
            lambda: Order.objects.filter(paid=True).union(Order.objects.filter(paid=False)),
        ],
    )
    def test_of_a_queryset_that_cannot_be_paged_is_refused(self, orders, entities):
        with pytest.raises(InvalidInput) as refused:
            emit_many("order.placed", entities())

        assert refused.value.field == "entities"

    @pytest.mark.parametrize("wrong", [Order(), Order(pk=0), "order 1", Parcel()], ids=["new", "0", "text", "another"])
    def test_of_an_entity_writes_nothing_of_its_batch(self, orders, wrong):
        with pytest.raises(WrongEntity):
            emit_many("order.placed", [*orders, wrong])

        assert not Event.objects.exists()

    def test_of_an_entity_leaves_the_batches_before_it(self, orders):
        with pytest.raises(WrongEntity, match=r"testapp\.order 0"):
            emit_many("order.placed", [*orders, Order(pk=0)], batch_size=2)

        assert {event.entity_id for event in Event.objects.all()} == {str(order.pk) for order in orders}

    def test_of_a_key_names_the_entity(self, orders):
        emit("order.placed", orders[2], key="k", payload={"n": 1})

        with pytest.raises(KeyConflict, match=f"testapp.order {orders[2].pk}") as conflict:
            emit_many("order.placed", orders, key="k", payload={"n": 2})

        assert conflict.value.key == "k"
        assert Event.objects.count() == 1
        assert set(TimelineRun.objects.values_list("entity_id", flat=True)) == {str(orders[2].pk)}

    def test_of_a_field_writes_nothing_of_its_batch(self, orders):
        Order.objects.filter(pk=orders[3].pk).update(ships_at=LATEST + timedelta(days=1))

        with transaction.atomic():
            with pytest.raises(DateOutOfRange):
                emit_many("order.placed", orders)
            assert not Event.objects.exists()  # The caller's transaction goes on.

    def test_of_a_field_is_none_where_no_run_begins(self, orders):
        start(Delivery, orders[3])
        Order.objects.filter(pk=orders[3].pk).update(ships_at=LATEST + timedelta(days=1))

        with pytest.raises(DateOutOfRange):  # Its event starts nothing, but ``reopened`` would.
            emit_many("order.reopened", orders)
        with only_timelines(Delivery):
            assert emit_many("order.placed", orders).started == 3


class TestCalledAgain:
    def test_carries_on_where_a_crash_stopped_it(self, orders):
        def until_it_crashes():
            yield from orders[:3]
            raise ConnectionError

        with pytest.raises(ConnectionError):
            emit_many("order.placed", until_it_crashes(), key="k", batch_size=2)
        assert Event.objects.count() == 2

        tally = emit_many("order.placed", orders, key="k", batch_size=2)

        assert (tally.recorded, tally.again, tally.started) == (2, 2, 6)
        assert ScheduledTask.objects.filter(task_key="care.greet").count() == 4

    def test_undoes_all_batches_with_the_callers_transaction(self, orders):
        with transaction.atomic():
            assert emit_many("order.placed", orders, batch_size=1).recorded == 4
            transaction.set_rollback(True)

        assert not Event.objects.exists()
        assert not ScheduledTask.objects.exists()


NAMES = ["order.placed", "order.closed", "order.reopened"]


class TestQueries:
    @pytest.mark.parametrize(
        ("many_orders", "few_orders", "name"),
        [
            *(pytest.param(30, 10, name, id=f"tables together: {name}") for name in NAMES),
            *(pytest.param(100, 50, name, id=f"tables apart: {name}") for name in NAMES),
            *(pytest.param(1000, 800, name, id=f"in portions: {name}") for name in sample(NAMES, len(NAMES))),
        ],
    )
    def test_are_as_many_for_many_as_for_few(self, now, statements_of, name, many_orders, few_orders):
        def many(count):
            orders = Order.objects.bulk_create([Order(ships_at=now) for _ in range(count)])
            start_all = emit_many("order.placed", orders[: count // 2])
            assert start_all.started == 3 * (count // 2)
            return statements_of(lambda: emit_many(name, orders, key="k"))

        assert many(many_orders) == many(few_orders)

    def test_are_few(self, orders, django_assert_max_num_queries):
        """A savepoint, as within a test's transaction; the lock, the events, the runs, the tasks."""
        with only_timelines(Delivery), django_assert_max_num_queries(6):
            emit_many("order.placed", orders, key="k")

    @pytest.mark.parametrize("key", ["", "k"])
    def test_of_one_event_are_two_on_postgresql(self, orders, key, django_assert_num_queries):
        """The lock, and event, run and tasks together; apart on SQLite, where there is no trip to save."""
        with only_timelines(Delivery), django_assert_num_queries(2 if VENDOR == "postgresql" else 4):
            emit("order.placed", orders[3], key=key)

        assert ScheduledTask.objects.filter(state=State.SCHEDULED).exists()


class TestPortions:
    """A large batch of runs that begin, on PostgreSQL: the database writes some while others are prepared."""

    @pytest.fixture
    def orders(self, now):
        return Order.objects.bulk_create([Order(ships_at=now + timedelta(days=5)) for _ in range(450)])

    @pytest.fixture
    def ahead(self):
        """The tables that are written to by statements sent ahead."""
        found = set()

        def look(execute, sql, *rest):
            if connection.vendor == "postgresql" and connection.connection.pgconn.pipeline_status and "INSERT" in sql:
                found.add(sql.split('"')[1])
            return execute(sql, *rest)

        with connection.execute_wrapper(look):
            yield found

    def test_write_what_one_would(self, orders, ahead):
        assert emit_many("order.placed", orders, key="k") == Tally(recorded=450, started=1350, tasks=1350)
        assert emit_many("order.placed", orders[:200], key="k") == Tally(again=200)

        tables = {"timeline_event", "timeline_timelinerun", "timeline_scheduledtask"}
        assert ahead == (tables if connection.vendor == "postgresql" else set())
        for task in ScheduledTask.objects.select_related("run"):
            assert (task.entity_ref, task.cause_id) == (task.run.entity_ref, task.run.started_by_id)

    def test_are_for_what_ends_no_runs_only(self, orders, ahead):
        """Runs and tasks are locked in order of their ids, all of the batch."""
        start_many(Delivery, orders[:50])

        assert emit_many("order.reopened", orders).ended == 50
        assert emit_many("order.closed", orders).ended == 450
        assert not ahead

    def test_are_for_where_no_host_is_told_of_a_run_that_begins(self, orders, ahead):
        """Who is told may look for an answer at once, and go on after an error of the database."""
        Country.objects.create(code="DE")
        found = []

        def hear(**_given):
            with suppress(IntegrityError), transaction.atomic():
                Country.objects.create(code="DE")
            found.extend(Country.objects.raw("SELECT code FROM testapp_country"))

        runs_entered.connect(hear)
        try:
            with only_timelines(Booking):
                assert emit_many("booking.created", orders).started == 450
                assert start_many(Booking, orders, key="another").started == 450
        finally:
            runs_entered.disconnect(hear)

        assert [country.code for country in found] == ["DE", "DE"]
        assert not ahead

    def test_keep_nothing_when_one_is_refused(self, orders):
        emit("order.placed", orders[440], key="k", payload={"other": True})

        with pytest.raises(KeyConflict):
            emit_many("order.placed", orders, key="k")

        assert Event.objects.count() == 1
        assert TimelineRun.objects.count() == 3

    def test_leave_out_what_was_recorded_under_whichever_name(self, now):
        customers = [Customer.objects.create(ends_at=now + timedelta(days=5)) for _ in range(250)]
        emit("order.placed", customers[240].account_ptr, key="k")

        assert emit_many("order.placed", customers, key="k") == Tally(recorded=249, again=1, started=249, tasks=249)
        assert emit_many("order.placed", customers, key="k") == Tally(again=250)

    def test_begin_runs_of_those_that_have_none(self, orders):
        start_many(Delivery, orders[100:300])

        tally = emit_many("order.placed", orders, key="k")

        assert (tally.recorded, tally.started) == (450, 1350 - 200)
        assert ScheduledTask.objects.filter(task_key="delivery.remind").count() == 450
        assert not TimelineRun.objects.exclude(timeline="on_demand").filter(tasks=None).exists()


class TestEntityRefs:
    def test_stand_for_their_entities(self, orders):
        refs = [EntityRef("testapp.order", str(order.pk)) for order in orders]

        assert emit_many("order.placed", refs).recorded == 4
