"""Execute in shadow: all of an attempt but the handler."""

from datetime import timedelta

import pytest
from django.db.models import Q

from tests.engine.watching import AtEntry
from tests.testapp.models import Effect, Order
from timeline import Retry, Timeline, task
from timeline.dispatch.rescue import rescue
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.operations.redrive import redrive
from timeline.testing import only_timelines

OPERATOR = Reason.operator("asked for", "ada")


def effect(job, order):
    """A handler that leaves its mark."""
    Effect.objects.create(name=str(job.idempotency_key))
    return "done"


def says_no(order):
    """A guard."""
    return False


@pytest.fixture
def shadowed(work):
    """The task of a timeline in shadow, whose handler would leave an effect."""
    return lambda handler=effect, **options: work(handler, in_shadow=True, **options)


class TestInShadow:
    @pytest.mark.parametrize("atomic", [True, False])
    def test_completes_without_entering_the_handler(self, shadowed, run_at, later, atomic):
        row = shadowed(atomic=atomic)

        done = run_at(row, later)

        assert (done.state, done.reason_code, done.reason) == (State.COMPLETED, "shadow", "would have run")
        assert (done.result, done.error, done.attempt, done.failures) == (None, "", 1, 0)
        assert (done.started_at, done.finished_at, done.lease_expires_at) == (later, later, None)
        assert [(entry.to_state, entry.reason_code) for entry in row.log.order_by("seq")] == [
            ("available", ""),
            ("active", ""),
            ("completed", "shadow"),
        ]
        assert not Effect.objects.exists()

    @pytest.mark.parametrize("atomic", [True, False])
    def test_is_what_keeps_the_handler_from_being_entered(self, work, run_at, later, atomic):
        """The same out of the shadow leaves an effect: the tests here would see it."""
        assert run_at(work(effect, atomic=atomic), later).reason_code == "done"
        assert Effect.objects.count() == 1

    def test_makes_no_instance_of_the_timeline(self, order, now, run_at, schedule_at):
        class Job(Timeline):
            entity = "testapp.Order"
            shadow = True

            def __init__(self, **context):
                raise AssertionError("The host's code was called.")

            @task()
            def work(self, order): ...

        with only_timelines(Job):
            done = run_at(schedule_at("job.work", order, now, now).task, now)

        assert (done.state, done.reason_code) == (State.COMPLETED, "shadow")

    def test_holds_for_a_system_timeline(self, db, now, run_at, schedule_at):
        class Sweep(Timeline):
            shadow = True

            @task()
            def sweep(self):
                Effect.objects.create(name="swept")

        with only_timelines(Sweep):
            done = run_at(schedule_at("sweep.sweep", None, now, now).task, now)

        assert done.reason_code == "shadow"
        assert not Effect.objects.exists()

    def test_lets_follow_ups_follow(self, shadowed, run_at, later):
        run_at(shadowed(), later)

        follow = ScheduledTask.objects.get(task_key="job.follow")
        assert (follow.state, follow.scheduled_at) == (State.SCHEDULED, later + timedelta(days=2))
        assert run_at(follow, follow.scheduled_at).reason_code == "shadow"
        assert TimelineRun.objects.get().is_finished

    @pytest.mark.parametrize("guard", [{"only_if": says_no}, {"only_if": Q(paid=True)}, {"unless": Q(paid=False)}])
    def test_asks_the_guards(self, shadowed, run_at, later, guard):
        done = run_at(shadowed(**guard), later)

        assert (done.state, done.reason_code) == (State.CANCELLED, "guard")

    def test_takes_the_failure_of_a_guard_for_one(self, shadowed, run_at, later):
        done = run_at(shadowed(only_if=lambda order: order.nothing_like_it, retry=Retry(max_attempts=1)), later)

        assert (done.state, done.reason_code, done.failures) == (State.DISCARDED, "error", 1)

    def test_takes_the_last_look(self, shadowed, run_at, later):
        row = shadowed(expires=timedelta(hours=1))

        done = run_at(row, later + timedelta(hours=1))

        assert (done.state, done.reason_code) == (State.CANCELLED, "expired")

    @pytest.mark.parametrize("atomic", [True, False])
    def test_records_nothing_for_a_task_cancelled_meanwhile(self, shadowed, run_at, later, atomic):
        row = shadowed(atomic=atomic)

        def somebody_else(active):
            cancel(task_ids=[active.pk], reason=OPERATOR, now=later, using="default")

        assert run_at(row, later, watch=AtEntry(somebody_else)) is None
        row.refresh_from_db()
        assert (row.state, row.reason_code) == (State.CANCELLED, "operator")

    def test_completes_the_next_attempt_of_what_failed_before_it(self, work, run_at, later):
        def handler(job, order):
            raise ValueError("boom")

        row = work(handler)
        failed = run_at(row, later)
        assert failed.state == State.RETRYABLE

        work(handler, in_shadow=True)
        done = run_at(row, failed.scheduled_at)

        assert (done.state, done.reason_code, done.attempt, done.failures) == (State.COMPLETED, "shadow", 2, 1)

    def test_carries_on_after_a_worker_that_was_lost(self, shadowed, run_at, later, let_lease_run_out):
        row = shadowed()

        def rescuer(active):
            let_lease_run_out(active)
            rescue(now=later, using="default")

        assert run_at(row, later, watch=AtEntry(rescuer)) is None
        assert run_at(row, later).reason_code == "shadow"
        assert ScheduledTask.objects.filter(task_key="job.follow").count() == 1


class TestTheSwitch:
    def test_changes_no_row(self, work, order, now, start_at):
        """What a row was computed from is the same in shadow and out of it, so none is moved or made anew."""
        work(effect, in_shadow=True)
        before = list(ScheduledTask.objects.values())

        work(effect)

        assert list(ScheduledTask.objects.values()) == before
        assert not start_at("job", order, now).created

    def test_lets_what_waits_run(self, work, run_at, later):
        row = work(effect, in_shadow=True)

        work(effect)

        assert run_at(row, later).reason_code == "done"
        assert Effect.objects.count() == 1

    def test_leaves_what_would_have_run_as_it_is(self, work, run_at, later):
        row = work(effect, in_shadow=True)
        run_at(row, later)

        work(effect)

        assert run_at(row, later) is None
        assert not Effect.objects.exists()
        assert list(ScheduledTask.objects.filter(task_key="job.work").values_list("reason_code")) == [("shadow",)]

    def test_lets_what_would_have_run_be_redriven(self, work, run_at, later):
        """By hand, once, with a key of its own; and what follows it follows again."""
        row = work(effect, in_shadow=True)
        run_at(row, later)
        work(effect)

        [again] = redrive(task_ids=[row.pk], reason=OPERATOR, now=later, using="default")
        done = run_at(again, later + timedelta(hours=1))

        row.refresh_from_db()
        assert (row.state, row.reason_code) == (State.COMPLETED, "shadow")
        assert (done.revision, done.state, done.reason_code, done.result) == (2, State.COMPLETED, "done", "done")
        assert [made.name for made in Effect.objects.all()] == [str(again.pk)]
        follow = ScheduledTask.objects.open().get()
        assert (follow.task_key, follow.scheduled_at) == ("job.follow", later + timedelta(days=2, hours=1))

    def test_back_into_the_shadow_records_a_redriven_task_only(self, shadowed, run_at, later):
        row = shadowed()
        run_at(row, later)

        [again] = redrive(task_ids=[row.pk], reason=OPERATOR, now=later, using="default")

        assert run_at(again, later).reason_code == "shadow"
        assert not Effect.objects.exists()
        assert Order.objects.exists()
