"""Two of everything at once: each thing happens once, nothing deadlocks, and nobody waits for what they need not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection, transaction

from tests.postgresql.races import Race, entered, go_on, just_now, now
from tests.testapp.models import Effect, Order
from timeline import Timeline, at, task
from timeline.dispatch.claim import claim
from timeline.dispatch.poll import stage
from timeline.dispatch.rescue import rescue
from timeline.dispatch.worker_signs import extend_leases, keep_paces
from timeline.engine.groups import run
from timeline.lifecycle import Reason, State
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.shortcuts import emit, schedule, start
from timeline.testing import only_timelines
from timeline.timing import EARLIEST

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("races")]


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
            assert entered.wait(120)
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
