"""Execute: what a handler raises, and the fence its outcome must pass."""

import time
from datetime import timedelta

import pytest
from django.db import connection, transaction

from tests.engine.watching import AtEntry
from tests.testapp.models import Effect, Order
from timeline import Cancel, Discard, RetryAfter, at
from timeline.dispatch.rescue import rescue
from timeline.engine import execute, execute_atomic
from timeline.engine.groups import BUDGET, Watch, run
from timeline.lifecycle import Reason, State
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel

OPERATOR = Reason.operator("asked for", "ada")


class TestWhatAHandlerRaises:
    def raising(self, error):
        def handler(job, order):
            Effect.objects.create(name="tried")
            raise error

        return handler

    @pytest.mark.parametrize("error", [ValueError("boom"), Cancel("no"), Discard("no"), RetryAfter(timedelta(1))])
    def test_rolls_back_what_an_atomic_handler_wrote(self, work, run_at, later, error):
        run_at(work(self.raising(error)), later)

        assert not Effect.objects.exists()

    def test_leaves_what_a_plain_handler_wrote(self, work, run_at, later):
        run_at(work(self.raising(ValueError("boom")), atomic=False), later)

        assert Effect.objects.count() == 1

    def test_may_be_an_error_it_had_caught_in_a_broken_transaction(self, work, run_at, later):
        """The database refuses all that follows, the outcome too: a failed attempt, not a lost one."""

        def handler(job, order):
            Effect.objects.create(name="tried")
            transaction.set_rollback(True)

        done = run_at(work(handler), later)

        assert (done.state, done.failures) == (State.RETRYABLE, 1)
        assert not Effect.objects.exists()


class TestAWaitForOutcomesThatLagBehind:
    def test_is_followed_by_another_look(self, work, run_at, later):
        """It takes longer than a look may be ago, and meanwhile somebody cancels the task."""
        row = work(lambda job, order: Effect.objects.create(name="done") and None, atomic=False)

        class Lagging(Watch):
            waited = False

            def keep_up(self):
                waits, self.waited = not self.waited, True
                if waits:
                    cancel(task_ids=[row.pk], reason=OPERATOR, now=later, using="default")
                    time.sleep(BUDGET.total_seconds())
                return waits

        assert run_at(row, later, watch=Lagging()) is None

        assert not Effect.objects.exists()


class TestTheFence:
    def effect(self, job, order):
        Effect.objects.create(name="done")
        return "done"

    @pytest.mark.parametrize(("atomic", "effects"), [(True, 0), (False, 1)])
    def test_records_nothing_for_a_task_cancelled_meanwhile(self, work, run_at, later, atomic, effects):
        """Cancelled by somebody else after the start: what an atomic handler wrote is undone, and the cancel stands."""
        row = work(self.effect, atomic=atomic)

        def somebody_else(active):
            cancel(task_ids=[active.pk], reason=OPERATOR, now=later, using="default")

        done = run_at(row, later, watch=AtEntry(somebody_else))

        row.refresh_from_db()
        assert done is None
        assert (row.state, row.reason_code, row.result) == (State.CANCELLED, "operator", None)
        assert Effect.objects.count() == effects
        assert list(row.log.order_by("seq").values_list("to_state", flat=True)) == [
            "available",
            "active",
            "cancelled",
        ]
        assert not ScheduledTask.objects.filter(task_key="job.follow").exists()

    @pytest.mark.parametrize(("atomic", "effects"), [(True, 1), (False, 2)])
    def test_records_nothing_for_an_attempt_given_up_for_lost(
        self, work, run_at, later, atomic, effects, let_lease_run_out
    ):
        row = work(self.effect, atomic=atomic)

        def rescuer(active):
            let_lease_run_out(active)
            rescue(now=later, using="default")

        assert run_at(row, later, watch=AtEntry(rescuer)) is None
        row.refresh_from_db()
        assert (row.state, row.reason_code) == (State.RETRYABLE, "worker_lost")

        assert run_at(row, later).attempt == 2
        assert Effect.objects.count() == effects

    def test_records_nothing_for_an_attempt_that_another_has_followed(self, work, run_at, later):
        """Active again, in the hands of another worker: the first one's outcome is not taken for the second's."""
        row = work(self.effect)

        def another_worker(active):
            ScheduledTask.objects.filter(pk=active.pk).update(attempt=2)

        assert run_at(row, later, watch=AtEntry(another_worker)) is None
        row.refresh_from_db()
        assert (row.state, row.attempt, row.result) == (State.ACTIVE, 2, None)
        assert not Effect.objects.exists()

    def test_holds_for_a_failure_too(self, work, run_at, later):
        def handler(job, order):
            raise ValueError("boom")

        row = work(handler)

        def somebody_else(active):
            cancel(task_ids=[active.pk], reason=OPERATOR, now=later, using="default")

        assert run_at(row, later, watch=AtEntry(somebody_else)) is None
        row.refresh_from_db()
        assert (row.state, row.failures, row.error) == (State.CANCELLED, 0, "")


@pytest.mark.django_db(transaction=True)
class TestTransactions:
    @pytest.mark.parametrize("atomic", [True, False])
    def test_are_held_for_atomic_handlers_only(self, work, run_at, later, atomic):
        row = work(lambda job, order: connection.in_atomic_block, atomic=atomic)

        assert run_at(row, later).result is atomic

    @pytest.mark.parametrize("atomic", [True, False])
    def test_commit_the_start_before_the_handler_is_entered(self, work, run_at, later, atomic):
        row = work(lambda job, order: self.state_elsewhere(row), atomic=atomic)

        assert run_at(row, later).result == ["active", 1]

    def state_elsewhere(self, row):
        """What another connection sees."""
        other = connection.copy()
        try:
            with other.cursor() as cursor:
                cursor.execute("SELECT state, attempt FROM timeline_scheduledtask WHERE id = %s", [row.pk.hex])
                return list(cursor.fetchone())
        finally:
            other.close()

    def test_must_not_be_open_around_a_run(self, work, later):
        row = work()

        with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
            run(task_ids=[row.pk], clock=lambda: later, using="default")

        row.refresh_from_db()
        assert row.state == State.SCHEDULED

    def test_run_what_is_to_follow_a_commit(self, work, run_at, later):
        seen = []
        row = work(lambda job, order: transaction.on_commit(lambda: seen.append(self.state_elsewhere(job.task)[0])))

        run_at(row, later)

        assert seen == ["completed"]


class TestAHandlerThatChangesItsOwnFuture:
    def test_completes_after_closing_its_timeline(self, work, run_at, later, emit_at):
        def handler(job, order):
            emit_at("order.closed", order, job.now)
            return "closed it"

        row = work(handler)

        done = run_at(row, later)

        assert (done.state, done.result) == (State.COMPLETED, "closed it")
        assert TimelineRun.objects.get().end_reason == "closed"
        assert not ScheduledTask.objects.open().exists()

    @pytest.mark.parametrize("atomic", [True, False])
    def test_completes_after_moving_its_anchor_and_is_armed_again(self, work, run_at, now, atomic, clock):
        clock.set(now)
        Order.objects.update(ships_at=now)

        def handler(job, order):
            order.ships_at = now + timedelta(days=7)
            order.save()

        row = work(handler, at("ships_at"), atomic=atomic)

        done = run_at(row, now)

        assert done.state == State.COMPLETED
        again = ScheduledTask.objects.get(task_key="job.work", revision=2)
        assert (again.state, again.scheduled_at, again.previous) == (State.SCHEDULED, now + timedelta(days=7), row)

    def test_completes_after_deleting_its_entity(self, work, run_at, later, clock):
        clock.set(later)
        row = work(lambda job, order: order.delete() and "deleted")

        done = run_at(row, later)

        assert (done.state, done.result) == (State.COMPLETED, "deleted")
        assert not Order.objects.exists()
        assert TimelineRun.objects.get().end_reason == "the entity was deleted"

    def test_is_undone_with_it_when_it_fails(self, work, run_at, later, emit_at):
        def handler(job, order):
            emit_at("order.closed", order, job.now)
            raise ValueError("boom")

        done = run_at(work(handler), later)

        assert done.state == State.RETRYABLE
        assert TimelineRun.objects.get().is_open
        assert not Event.objects.exists()


class TestThePaceOfHandlers:
    class Learning(Watch):
        def __init__(self):
            self.seconds = []

        def took(self, task_key, count, seconds):
            self.seconds += [round(seconds, 3)] * count

    @pytest.fixture
    def pass_time(self, monkeypatch):
        """Let time pass by so many seconds: ``pass_time(0.001)``. To record takes ten seconds."""
        begun, passed = time.monotonic(), []
        for module, record in (
            (execute, "record_together"),
            (execute, "record_all"),
            (execute_atomic, "record_together"),
            (execute_atomic, "settle"),
        ):
            monkeypatch.setattr(module, "monotonic", lambda: begun + sum(passed))
            recorded = getattr(module, record)
            monkeypatch.setattr(
                module,
                record,
                lambda *given, recorded=recorded, **named: passed.append(10) or recorded(*given, **named),
            )
        return passed.append

    @pytest.mark.parametrize("atomic", [True, "own", "shared", False])
    @pytest.mark.parametrize("count", [1, 3])
    def test_is_learned_without_the_time_to_record_them(
        self, crowd, run_all, transactional_db, pass_time, atomic, count
    ):
        """A slow database would make groups small; so they would be recorded more often, which makes all slower still."""
        learning = self.Learning()

        done = run_all(crowd(count, lambda job, order: pass_time(0.002), atomic=atomic), watch=learning)

        assert len(done) == count
        assert learning.seconds == [0.002] * count
