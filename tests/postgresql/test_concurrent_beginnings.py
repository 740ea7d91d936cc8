"""Starts, events, single tasks and exits of the same entities at once: as if one came after the other."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models.signals import post_delete
from django.utils import timezone

from tests.postgresql.races import Count, Race, entered, just_now, now, somebody_waits
from tests.processes import wait_for
from tests.testapp.models import Account, Customer, Order
from timeline import Timeline, after, task
from timeline.exceptions import WrongEntity
from timeline.lifecycle import State
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, emit_many, enroll, schedule, start, start_many
from timeline.store.insert import insert_missing
from timeline.testing import only_timelines

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("races")]


class TestStarts:
    def test_of_the_same_run_make_one(self, order, at_once):
        results = at_once(*[lambda: start(Race, order) for _ in range(6)])

        assert sorted(result.created for result in results) == [False] * 5 + [True]
        assert TimelineRun.objects.count() == 1

    def test_of_a_system_timeline_make_one(self, at_once):
        results = at_once(*[lambda: emit("sweep.wanted") for _ in range(6)])

        assert sorted(len(result.started) for result in results) == [0] * 5 + [1]
        assert ScheduledTask.objects.count() == 1

    def test_of_the_same_event_record_it_once(self, order, at_once):
        results = at_once(*[lambda: emit("order.placed", order, key="k") for _ in range(6)])

        assert sorted(result.recorded for result in results) == [False] * 5 + [True]
        assert Event.objects.count() == 1

    def test_and_exits_end_as_if_one_came_after_the_other(self, order, at_once):
        Order.objects.update(ships_at=timezone.now() + timedelta(days=9))

        results = at_once(
            *[lambda: emit("order.placed", order), lambda: emit("order.paid", order)] * 4,
        )

        assert [result for result in results if isinstance(result, Exception)] == []
        for a_run in TimelineRun.objects.all():
            open_tasks = a_run.tasks.filter(state=State.SCHEDULED).count()
            assert open_tasks == (1 if a_run.is_open else 0)


class TestTimes:
    @pytest.mark.parametrize(
        "begin",
        [
            lambda order: emit("order.placed", order),
            lambda order: emit_many("order.placed", [order]),
            lambda order: start(Count, order),
            lambda order: start_many(Count, [order]),
        ],
        ids=["emit", "emit_many", "start", "start_many"],
    )
    def test_are_when_the_entity_is_locked_not_when_that_was_asked_for(self, order, at_once, begin):
        """What waited for an exit began after it: else the last look would take it for ended."""

        def pay():
            with transaction.atomic():
                Order.objects.select_for_update(no_key=True).get()
                entered.set()
                wait_for(somebody_waits, "the other's waiting for the row")
                emit("order.paid", order)

        def wait():
            assert entered.wait(120)
            begin(order)

        with only_timelines(Count):
            at_once(pay, wait)

        paid = Event.objects.get(name="order.paid")
        assert TimelineRun.objects.get().started_at > paid.occurred_at


class TestSchedule:
    def test_waits_for_who_has_the_entity_and_makes_the_row_then(self, order, at_once):
        def hold():
            with transaction.atomic():
                Order.objects.select_for_update(no_key=True).get()
                entered.set()
                wait_for(somebody_waits, "the other's waiting for the row")
                return schedule("race.quick", order, at=now() + timedelta(days=1), key="k").created

        def wait():
            assert entered.wait(120)
            return schedule("race.quick", order, at=now(), key="l").task.created_at

        held, made_at = at_once(hold, wait)

        assert held
        assert made_at > ScheduledTask.objects.get(occurrence="k").created_at

    def test_of_the_same_key_at_once_makes_one(self, order, at_once):
        due = now() + timedelta(days=1)

        results = at_once(*[lambda: schedule("race.quick", order, at=due, key="k") for _ in range(6)])

        assert sorted(result.created for result in results) == [False] * 5 + [True]
        assert len({result.task.pk for result in results}) == 1


class TestSets:
    """Verbs for many entities, over the same ones in opposite orders."""

    @pytest.fixture
    def orders(self):
        ships_at = timezone.now() + timedelta(days=9)
        return Order.objects.bulk_create([Order(ships_at=ships_at) for _ in range(200)])

    def test_of_events_record_and_start_each_once(self, orders, at_once):
        tallies = at_once(
            *[lambda: emit_many("order.placed", orders[:150], key="k", batch_size=50)] * 2,
            *[lambda: emit_many("order.placed", orders[:49:-1], key="k", batch_size=70)] * 2,
        )

        assert sum(tally.recorded for tally in tallies) == sum(tally.started for tally in tallies) == 200
        assert sum(tally.again for tally in tallies) == 400
        assert Event.objects.count() == TimelineRun.objects.count() == ScheduledTask.objects.count() == 200

    def test_and_single_ones_neither_deadlock_nor_duplicate(self, orders, at_once):
        def one_by_one():
            with transaction.atomic():  # Holds its locks, each with one more, to the end.
                return sum(emit("order.placed", order, key="k").recorded for order in orders)

        results = at_once(one_by_one, lambda: emit_many("order.placed", orders[::-1], key="k"), one_by_one)

        assert sum(result if isinstance(result, int) else result.recorded for result in results) == 200
        assert TimelineRun.objects.count() == 200

    def test_of_starts_and_exits_end_as_if_one_came_after_the_other(self, orders, at_once):
        results = at_once(
            lambda: emit_many("order.placed", orders, batch_size=30),
            lambda: emit_many("order.paid", orders[::-1], batch_size=40),
            lambda: enroll(Race, Order.objects.all(), batch_size=50),
            lambda: emit_many("order.paid", orders, batch_size=50),
        )

        assert [result for result in results if isinstance(result, Exception)] == []
        open_tasks = ScheduledTask.objects.open()
        assert {task.run_id for task in open_tasks} == {run.pk for run in TimelineRun.objects.open()}
        assert open_tasks.count() == TimelineRun.objects.open().count()


class TestInserts:
    def test_of_the_same_at_once_make_one_row_and_break_no_transaction(self, order, at_once):
        """Without the lock that operations take: the second waits for the first, and is told."""

        def insert():
            with transaction.atomic():
                event = Event(name="order.seen", key="k", payload={}, occurred_at=now(), recorded_at=now())
                inserted = insert_missing([event], using="default")
                time.sleep(0.2)
                return len(inserted), Order.objects.count()  # The transaction goes on.

        results = at_once(insert, insert, insert)

        assert sorted(results) == [(0, 1), (0, 1), (1, 1)]
        assert Event.objects.count() == 1


class TestAChildOfTwoTables:
    def test_is_locked_in_the_order_in_which_it_is_saved(self, at_once):
        """Django writes the parent's row first; an event of the child that locked the child's first would deadlock."""
        customer = Customer.objects.create()

        def save():
            with transaction.atomic():
                Account.objects.update(note="saved")
                entered.set()
                wait_for(somebody_waits, "the event's waiting for the row")
                Customer.objects.update(visits_at=just_now())
            return "saved"

        def say():
            assert entered.wait(120)
            return emit("customer.moved", customer).recorded

        assert at_once(save, say) == ["saved", True]

    def test_is_locked_in_this_order_before_it_is_deleted(self, at_once):
        """Django deletes the child's row first; an event of the child that has locked the parent's would deadlock."""

        class Tour(Timeline):
            entity = "testapp.Customer"
            starts_on = "customer.moved"

            @task(after(days=1))
            def visit(self, customer): ...

        with only_timelines(Tour):
            customer = Customer.objects.create()
            emit("customer.moved", customer)

            def delete():
                Customer.objects.get().delete()
                return "deleted"

            def go_slowly(**_signal):
                entered.set()
                wait_for(somebody_waits, "the event's waiting for the row")

            def say():
                assert entered.wait(120)
                with pytest.raises(WrongEntity):
                    emit("customer.moved", customer)
                return "gone"

            post_delete.connect(go_slowly, sender=Customer)
            try:
                assert at_once(delete, say) == ["deleted", "gone"]
            finally:
                post_delete.disconnect(go_slowly, sender=Customer)
        assert not TimelineRun.objects.open().exists()
