"""Two of everything at once: each thing happens once, nothing deadlocks, and nobody waits for what they need not."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.processes import wait_for
from tests.testapp.models import Account, Customer, Effect, Order
from timeline import Timeline, after, at, task
from timeline.clocks import story_now
from timeline.lifecycle import Reason, State
from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun
from timeline.models.inserting import insert_missing
from timeline.operations.cancelling import cancel
from timeline.operations.claiming import claim
from timeline.operations.extending import extend_leases
from timeline.operations.pacing import keep_paces
from timeline.operations.rescuing import rescue
from timeline.operations.running import run
from timeline.operations.staging import stage
from timeline.shortcuts import emit, emit_many, enroll, schedule, start, start_many
from timeline.testing import only_timelines
from timeline.timing import EARLIEST

pytestmark = pytest.mark.django_db(transaction=True)

entered = threading.Event()
go_on = threading.Event()


class Race(Timeline):
    """Starts and ends by events; one task waits in its handler until it may go on."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.paid": "paid"}

    @task(at("ships_at"))
    def ship(self, order: Order) -> None:
        Effect.objects.create(name="ship")

    @task(after(ship, days=1))
    def thank(self, order: Order) -> None: ...

    @task()
    def slow(self, order: Order) -> None:
        Effect.objects.create(name="slow")
        entered.set()
        assert go_on.wait(20)

    @task()
    def quick(self, order: Order) -> None:
        Effect.objects.create(name="quick")


class Count(Timeline):
    """Reads nothing of its entity."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.paid": "paid"}

    @task(after(days=1))
    def remind(self, order: Order) -> None: ...


class Sweep(Timeline):
    """Of no entity."""

    starts_on = "sweep.wanted"

    @task(after(days=1))
    def sweep(self) -> None: ...


@pytest.fixture(autouse=True)
def _race(db):
    entered.clear()
    go_on.clear()
    with only_timelines(Race, Sweep):
        yield


def now():
    return story_now("default")


def just_now():
    return timezone.now() - timedelta(seconds=1)


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
            assert entered.wait(20)
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
            assert entered.wait(20)
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


class TestPolls:
    def test_claim_each_task_once(self, order, at_once):
        keep_paces({"race.quick": 0.001}, using="default")  # So that a message holds many.
        for number in range(60):
            schedule("race.quick", order, at=just_now(), key=str(number))

        claimed = at_once(*[lambda: claim(limit=25, now=now(), using="default") for _ in range(4)])

        ids = [task_id for batches in claimed for batch in batches for task_id in batch.task_ids]
        assert len(ids) == len(set(ids)) == 60
        assert max(sum(len(batch.task_ids) for batch in batches) for batches in claimed) <= 25

    def test_stage_and_rescue_each_task_once(self, order, make_task, at_once):
        for _ in range(30):
            make_task(task_key="race.quick")
            make_task(task_key="race.quick", state=State.ACTIVE, attempt=1, lease_expires_at=EARLIEST)

        at_once(*[lambda: (stage(now=now(), using="default"), rescue(now=now(), using="default")) for _ in range(4)])

        entries = LogEntry.objects.values_list("task", "seq")
        assert len(entries) == len(set(entries))
        assert ScheduledTask.objects.filter(attempt=1, lost=0, state__in=["retryable", "available"]).count() == 30

    def test_take_no_more_than_the_limit_though_statistics_are_stale(self, order):
        """The plan must not flip to one that locks and takes more, which an IN with a LIMIT inside may do."""
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE timeline_scheduledtask")
        for number in range(300):
            schedule("race.quick", order, at=just_now(), key=str(number))

        batches = claim(limit=7, now=now(), using="default")

        assert sum(len(batch.task_ids) for batch in batches) == 7
        assert ScheduledTask.objects.filter(state=State.PENDING).count() == 7

    def test_do_not_wait_for_rows_that_others_hold(self, order, at_once):
        held = schedule("race.quick", order, at=just_now(), key="held").task
        free = schedule("race.quick", order, at=just_now(), key="free").task

        with transaction.atomic():
            list(ScheduledTask.objects.filter(pk=held.pk).select_for_update())
            [batches] = at_once(lambda: claim(now=now(), using="default"))

        assert [batch.task_ids for batch in batches] == [[free.pk]]


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


class TestHeartbeats:
    def test_do_not_wait_for_rows_that_others_hold(self, make_task, at_once):
        """Somebody's long transaction on one task must not cost the others of the same worker their leases."""
        held, free = (make_task(state=State.ACTIVE, attempt=1, lease_expires_at=EARLIEST) for _ in range(2))

        with transaction.atomic():
            list(ScheduledTask.objects.filter(pk=held.pk).select_for_update())
            [extended] = at_once(lambda: extend_leases({held.pk: 1, free.pk: 1}, using="default"))

        assert extended == 1
        assert ScheduledTask.objects.given_up().get() == held


class TestRuns:
    def test_of_the_same_task_enter_it_once(self, order, at_once):
        row = schedule("race.quick", order, at=just_now()).task

        at_once(*[lambda: run(task_ids=[row.pk], clock=now, using="default") for _ in range(6)])

        row.refresh_from_db()
        assert (row.state, row.attempt) == ("completed", 1)
        assert Effect.objects.count() == 1


class TestCancelOfARunningTask:
    def test_wins_if_it_commits_before_the_outcome(self, order, at_once):
        """What the atomic handler wrote is rolled back, and the row says who cancelled it."""
        row = schedule("race.slow", order, at=just_now()).task

        def cancel_meanwhile():
            assert entered.wait(20)
            cancelled = cancel(task_ids=[row.pk], reason=Reason.operator("stop", "ada"), now=now(), using="default")
            go_on.set()
            return cancelled

        done, cancelled = at_once(lambda: run(task_ids=[row.pk], clock=now, using="default"), cancel_meanwhile)

        row.refresh_from_db()
        assert done == []
        assert [task.state for task in cancelled] == ["cancelled"]
        assert (row.state, row.actor) == ("cancelled", "ada")
        assert not Effect.objects.exists()


class TestRequests:
    @pytest.mark.parametrize("emit_first", [True, False])
    def test_that_save_and_exit_neither_deadlock_with_a_handler_nor_lose_to_it(self, order, at_once, emit_first):
        """A web request saves its order and emits an exit, in either order, while that order's atomic handler runs."""
        Order.objects.update(ships_at=just_now())
        order.refresh_from_db()
        start(Race, order)
        row = ScheduledTask.objects.get(task_key="race.ship")

        def request():
            with transaction.atomic():
                fresh = Order.objects.get(pk=order.pk)
                fresh.paid = True
                if emit_first:
                    emit("order.paid", fresh)
                    fresh.save()
                else:
                    fresh.save()
                    emit("order.paid", fresh)
            return "paid"

        results = at_once(request, lambda: run(task_ids=[row.pk], clock=now, using="default"))

        assert results[0] == "paid"
        assert not isinstance(results[1], Exception)
        row.refresh_from_db()
        assert Effect.objects.count() == (1 if row.state == "completed" else 0)
        assert not ScheduledTask.objects.open().exists()
        order.refresh_from_db()
        assert order.paid


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
            assert entered.wait(20)
            return emit("customer.moved", customer).recorded

        assert at_once(save, say) == ["saved", True]


def somebody_waits():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0] > 0


class TestOutcomes:
    def test_of_the_last_two_tasks_at_once_finish_the_run(self, at_once):
        orders = [Order.objects.create(ships_at=datetime(2026, 1, 1, tzinfo=UTC)) for _ in range(8)]

        class Pair(Timeline):
            entity = "testapp.Order"

            @task(at("ships_at"))
            def one(self, order: Order) -> None: ...

            @task(at("ships_at"), atomic=False)
            def two(self, order: Order) -> None: ...

        with only_timelines(Pair):
            for order in orders:
                start(Pair, order)
                ids = list(ScheduledTask.objects.for_entity(order).values_list("pk", flat=True))
                at_once(*[lambda pk=pk: run(task_ids=[pk], clock=now, using="default") for pk in ids])

        assert set(TimelineRun.objects.values_list("end_reason", flat=True)) == {"finished"}


class TestLostConnection:
    def test_is_not_the_handlers_fault(self, order):
        class Unlucky(Timeline):
            entity = "testapp.Order"

            @task()
            def work(self, order: Order) -> None:
                if self.task.attempt == 1:
                    with connection.cursor() as cursor:
                        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

        with only_timelines(Unlucky):
            row = schedule("unlucky.work", order, at=just_now()).task

            [failed] = run(task_ids=[row.pk], clock=now, using="default")

        assert (failed.state, failed.failures, failed.attempt) == ("retryable", 0, 1)
