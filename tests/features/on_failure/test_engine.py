"""A task that has failed for good has a handler for that: once, in a row of its own, and after nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Effect, Order
from timeline import Cancel, Discard, Retry, Timeline, after, task
from timeline.features.on_failure.store import failed_before, write_handlers
from timeline.models import ScheduledTask
from timeline.shortcuts import cancel, emit, explain, redrive, schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

TWICE = Retry(max_attempts=2, base=timedelta(minutes=1))


class Billing(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.closed": "closed"}

    @task(atomic=False, retry=TWICE)
    def tell(self, order):
        """Tell somebody."""
        failed = self.task.payload["failed"]
        Effect.objects.create(name=failed["message"][:50])
        if order.note == "broken mail":
            raise OSError("no mail")
        return failed

    @task(after(days=1), retry=TWICE, on_failure=tell)
    def pay(self, order):
        if order.note in ("closed", "broken mail"):
            raise ValueError("the bank is closed")
        if order.note == "never":
            raise Discard("no such account")
        if order.note == "cancel":
            raise Cancel("not wanted")
        return "paid"

    @task(on_failure="tell")
    def alone(self, order):
        raise Discard("no such account")


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Billing), clock.failing():
        yield


def run(order, clock, note):
    order.note = note
    order.save()
    emit("order.placed", order)
    clock.advance(days=2)
    return ScheduledTask.objects.get(task_key="billing.pay")


def handlers():
    return ScheduledTask.objects.filter(task_key="billing.tell").order_by("created_at", "pk")


class TestAHandlerOfAFailure:
    def test_runs_after_the_last_attempt_with_what_has_failed(self, order, clock):
        failed = run(order, clock, "closed")

        assert (failed.state, failed.attempt) == ("discarded", 2)
        [row] = handlers()
        assert (row.state, row.attempt, row.run_id, row.entity_ref) == ("completed", 1, None, failed.entity_ref)
        assert row.result == {
            "task": str(failed.pk),
            "task_key": "billing.pay",
            "attempt": 2,
            "class": "ValueError",
            "message": "the bank is closed",
            "reason": "error",
        }
        assert row.created_at == failed.finished_at

    def test_runs_after_a_handler_gave_up(self, order, clock):
        run(order, clock, "never")

        [row] = handlers()
        assert (row.result["class"], row.result["message"]) == ("timeline.exceptions.Discard", "no such account")

    def test_is_told_of_a_lost_worker_and_not_of_the_error_before(self, order, clock):
        lost = schedule("billing.alone", order, at=clock.now + timedelta(days=9)).task
        lost.reason_code, lost.reason, lost.error = "worker_lost", "worker w1 was not heard of", "ValueError: before"
        write_handlers([lost], now=clock.now, using="default")

        failed = handlers().get().payload["failed"]
        assert (failed["class"], failed["message"]) == ("timeline.exceptions.WorkerLost", "worker w1 was not heard of")

    def test_runs_after_a_task_without_a_run(self, order, clock):
        schedule("billing.alone", order, at=clock.now)
        clock.run_due()

        assert handlers().get().result["task_key"] == "billing.alone"

    @pytest.mark.parametrize("note", ["", "cancel"])
    def test_does_not_run_after_another_end(self, order, clock, note):
        assert run(order, clock, note).state in ("completed", "cancelled")

        assert not handlers().exists()

    def test_does_not_run_after_somebody_cancelled_it(self, order, clock):
        emit("order.placed", order)
        cancel(ScheduledTask.objects.get(), reason="not wanted", actor="ada")
        clock.advance(days=2)

        assert not handlers().exists()

    def test_is_not_ended_by_an_exit(self, order, clock):
        order.note = "broken mail"
        order.save()
        emit("order.placed", order)
        while not handlers().exists():
            clock.advance(minutes=10)
        clock.advance(seconds=1)
        before = handlers().get()

        emit("order.closed", order)

        assert handlers().get().state == before.state != "cancelled"

    def test_is_tried_again_by_its_own_retry_and_has_no_handler_itself(self, order, clock):
        run(order, clock, "broken mail")

        [row] = handlers()
        assert (row.state, row.attempt, row.failures) == ("discarded", 2, 2)
        assert Effect.objects.count() == 2

    def test_runs_for_each_revision_that_fails(self, order, clock):
        failed = run(order, clock, "closed")
        [again] = redrive(failed, reason="the bank is open", actor="ada")
        clock.advance(days=1)

        again.refresh_from_db()
        assert again.state == "discarded"
        assert [row.occurrence for row in handlers()] == [str(failed.pk), str(again.pk)]


class TestMany:
    def test_that_fail_together_take_one_statement(self, clock):
        counted = []
        for many in (2, 20):
            orders = [Order.objects.create() for _ in range(many)]
            tasks = [schedule("billing.alone", order, at=clock.now + timedelta(days=9)).task for order in orders]
            with CaptureQueriesContext(connection) as queries:
                write_handlers(tasks, now=clock.now, using="default")
            counted.append(len([each for each in queries if each["sql"].startswith(("INSERT", "WITH"))]))

        assert counted == [1, 1]
        assert handlers().count() == 22

    def test_write_no_row_twice(self, order, clock):
        tasks = [schedule("billing.alone", order, at=clock.now + timedelta(days=9)).task]
        for _ in range(2):
            write_handlers(tasks, now=clock.now, using="default")

        assert handlers().count() == 1


class TestExplain:
    def test_is_not_seen_in_a_payload_that_looks_like_its_own(self, order, clock):
        row = schedule("billing.tell", order, at=clock.now, key="7", payload={"failed": {"task": "7"}}).task

        assert failed_before(row) is None
        assert "has failed for good" not in str(explain(row))

    def test_tells_of_the_failed_task_what_came_of_it(self, order, clock):
        failed = run(order, clock, "closed")
        [row] = handlers()

        assert f"As it failed, billing.tell got the row {row.pk}: completed, due on " in explain(failed)
        assert f"It runs because the task {failed.pk} has failed for good." in explain(row)
        assert "the bank is closed" not in explain(row).partition("It runs because")[2]

    def test_tells_of_a_redriven_task_what_has_happened(self, order, clock):
        failed = run(order, clock, "closed")
        order.note = ""
        order.save()
        [again] = redrive(failed, reason="the bank is open", actor="ada")

        said = f"As the revision before it failed, billing.tell got the row {handlers().get().pk}: completed"
        assert said in explain(again)
        clock.run_due()
        again.refresh_from_db()
        assert again.state == "completed"
        assert said in explain(again)
        assert handlers().count() == 1
