"""Run: the last look, the handler, the outcome, and everything that can come between."""

import sqlite3
from datetime import date, timedelta
from uuid import uuid4

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import Q
from django.utils import timezone, translation

from tests.testapp.models import Effect, Order
from timeline import Cancel, Discard, Retry, RetryAfter, Timeline, after, at, task
from timeline.lifecycle import OPEN, Reason, State
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.operations._attempting import begin
from timeline.operations._looking import look
from timeline.operations.cancelling import cancel
from timeline.operations.claiming import claim
from timeline.operations.hastening import run_now
from timeline.operations.moving import move
from timeline.operations.redriving import redrive
from timeline.operations.rescuing import rescue
from timeline.operations.running import Watch, run
from timeline.operations.staging import stage
from timeline.testing import only_timelines

OPERATOR = Reason.operator("asked for", "ada")


@pytest.fixture
def work(order, now, start_at):
    """Have one task, ``job.work``, due a day after the start of its run: ``work(handler, …)`` gives its row."""
    known = []

    def declare(handler=lambda job, order: None, when=None, declared=None, **options):
        class Job(Timeline):
            entity = "testapp.Order"
            exits = {"order.closed": "closed"}
            time_zone = "zone"
            language = "language"

            @task(when or after(days=1), **options)
            def work(self, order):
                return handler(self, order)

            @task(after(work, days=2))
            def follow(self, order):
                return None

            @task()
            def ad_hoc(self, order):
                return handler(self, order)

        for name, value in (declared or {}).items():
            setattr(Job, name, value)
        context = only_timelines(Job)
        context.__enter__()
        known.append(context)
        start_at("job", order, now)
        return ScheduledTask.objects.get(task_key="job.work")

    yield declare
    for context in reversed(known):
        context.__exit__(None, None, None)


class AtEntry(Watch):
    """Lets somebody else do something after the start was committed, before the handler is entered."""

    def __init__(self, action):
        self.action = action

    def entered(self, task):
        self.action(task)


class TestRun:
    def test_completes_with_what_the_handler_returns(self, work, run_at, later):
        row = work(lambda job, order: {"sent": [1, None, "ü"]})

        done = run_at(row, later, worker="w1")

        row.refresh_from_db()
        assert done == row
        assert (row.state, row.result, row.reason_code) == (State.COMPLETED, {"sent": [1, None, "ü"]}, "done")
        assert (row.attempt, row.failures, row.worker) == (1, 0, "w1")
        assert (row.started_at, row.finished_at, row.error) == (later, later, "")

    @pytest.mark.parametrize("result", [None, 0, "", [], False, "text", 1.5])
    def test_keeps_any_plain_result(self, work, run_at, later, result):
        row = work(lambda job, order: result)

        run_at(row, later)

        assert ScheduledTask.objects.get(pk=row.pk).result == result

    @pytest.mark.parametrize("atomic", [True, False])
    @pytest.mark.parametrize(
        "result", [{1, 2}, date(2026, 1, 1), {"at": float("nan")}, {1: "key"}, ("a",), "x" * 70_000]
    )
    def test_takes_a_result_that_is_not_plain_json_for_a_failure(self, work, run_at, later, result, atomic):
        row = work(lambda job, order: result, atomic=atomic)

        done = run_at(row, later)

        assert (done.state, done.failures, done.result) == (State.RETRYABLE, 1, None)
        assert done.reason.startswith("result: ")

    def test_gives_the_follow_up_its_row_with_the_outcome(self, work, run_at, later):
        row = work()

        run_at(row, later)

        follow = ScheduledTask.objects.get(task_key="job.follow")
        assert (follow.state, follow.scheduled_at, follow.anchor_value) == (
            State.SCHEDULED,
            later + timedelta(days=2),
            later,
        )

    def test_finishes_the_run_with_its_last_outcome(self, work, run_at, later):
        run_at(work(), later)
        assert TimelineRun.objects.get().is_open

        run_at(ScheduledTask.objects.get(task_key="job.follow"), later + timedelta(days=2))

        stored = TimelineRun.objects.get()
        assert (stored.ended_at, stored.end_reason) == (later + timedelta(days=2), "finished")

    def test_has_no_follow_up_of_what_did_not_complete(self, work, run_at, later):
        def handler(job, order):
            raise Discard("never")

        run_at(work(handler), later)

        assert not ScheduledTask.objects.filter(task_key="job.follow").exists()
        assert TimelineRun.objects.get().is_finished

    def test_runs_many_in_the_order_given(self, work, later, order, schedule_at):
        seen = []
        work(lambda job, order: seen.append(job.task.pk))
        rows = [schedule_at("job.ad_hoc", order, later, later).task for _ in range(3)]
        wanted = [rows[2].pk, rows[0].pk, rows[1].pk]

        done = run(task_ids=wanted, clock=lambda: later, using="default")

        assert seen == wanted
        assert [row.pk for row in done] == wanted

    def test_enters_a_handler_once_for_an_id_given_twice(self, work, later):
        seen = []
        row = work(lambda job, order: seen.append(1))

        run(task_ids=[row.pk, row.pk], clock=lambda: later, using="default")

        assert seen == [1]

    def test_does_nothing_the_second_time(self, work, run_at, later):
        seen = []
        row = work(lambda job, order: seen.append(1))
        run_at(row, later)

        assert run_at(row, later) is None
        assert seen == [1]

    def test_leaves_a_task_that_is_not_due(self, work, run_at, later):
        row = work()

        assert run_at(row, later - timedelta(microseconds=1)) is None
        row.refresh_from_db()
        assert (row.state, row.seq) == (State.SCHEDULED, 0)

    def test_leaves_a_task_of_an_unknown_key(self, work, run_at, later):
        row = work()
        ScheduledTask.objects.update(task_key="job.gone")

        assert run_at(row, later) is None
        row.refresh_from_db()
        assert (row.state, row.seq) == (State.SCHEDULED, 0)

    @pytest.mark.parametrize("state", sorted(set(State) - {State.SCHEDULED, State.RETRYABLE, State.AVAILABLE}))
    def test_leaves_a_task_that_is_held_or_ended(self, work, run_at, later, make_task, order, state):
        work()
        row = make_task(state=state, task_key="job.ad_hoc", entity_label="testapp.order", entity_id=str(order.pk))

        assert run_at(row, later) is None
        assert row.log.count() == 0

    def test_takes_a_claimed_task_by_its_token_only(self, work, run_at, later):
        row = work()
        stage(now=later, using="default")
        [batch] = claim(now=later, using="default")

        assert run_at(row, later) is None
        assert run_at(row, later, token=uuid4()) is None
        assert run_at(row, later, token=batch.token).state == State.COMPLETED

    def test_passes_over_ids_that_are_not_there(self, work, run_at, later):
        row = work()

        done = run(task_ids=[uuid4(), row.pk], clock=lambda: later, using="default")

        assert done == [row]

    def test_lets_a_failure_be_its_own(self, work, later, order, schedule_at):
        def handler(job, order):
            if job.task.payload.get("fails"):
                raise ValueError("boom")

        work(handler)
        rows = [
            schedule_at("job.ad_hoc", order, later, later, payload=payload).task
            for payload in ({}, {"fails": True}, {})
        ]

        done = run(task_ids=[row.pk for row in rows], clock=lambda: later, using="default")

        assert [row.state for row in done] == [State.COMPLETED, State.RETRYABLE, State.COMPLETED]

    def test_runs_the_task_of_a_system_timeline_without_an_entity(self, db, now, start_at):
        class Sweep(Timeline):
            @task(after(hours=1))
            def sweep(self):
                return self.run.timeline

        with only_timelines(Sweep):
            start_at("sweep", None, now)
            row = ScheduledTask.objects.get()
            run(task_ids=[row.pk], clock=lambda: now + timedelta(hours=1), using="default")

        row.refresh_from_db()
        assert (row.state, row.result) == (State.COMPLETED, "sweep")


class TestGuards:
    HOLDS = [lambda order: True, lambda order: 1, Q(paid=True)]
    FAILS = [lambda order: False, lambda order: None, Q(paid=False), ~Q(paid=True)]

    @pytest.fixture(autouse=True)
    def _paid(self, order):
        Order.objects.update(paid=True)

    @pytest.mark.parametrize(
        "guards",
        [
            *({"only_if": guard} for guard in HOLDS),
            *({"unless": guard} for guard in FAILS),
            {"only_if": Q(paid=True), "unless": lambda order: not order.paid},
        ],
    )
    def test_let_the_handler_be_entered(self, work, run_at, later, guards):
        assert run_at(work(**guards), later).state == State.COMPLETED

    @pytest.mark.parametrize(
        "guards",
        [
            *({"only_if": guard} for guard in FAILS),
            *({"unless": guard} for guard in HOLDS),
            {"only_if": Q(paid=True), "unless": lambda order: order.paid},
        ],
    )
    @pytest.mark.parametrize("atomic", [True, False])
    def test_keep_the_handler_from_being_entered(self, work, run_at, later, guards, atomic):
        seen = []
        row = work(lambda job, order: seen.append(1), atomic=atomic, **guards)

        done = run_at(row, later)

        assert (done.state, done.reason_code, done.failures) == (State.CANCELLED, "guard", 0)
        assert seen == []
        assert TimelineRun.objects.get().is_finished

    def test_are_named_in_the_reason(self, work, run_at, later):
        def is_unpaid(order):
            return not order.paid

        assert run_at(work(only_if=is_unpaid), later).reason == "only_if is_unpaid"

    def test_are_read_at_the_moment_of_running(self, work, run_at, later):
        row = work(unless=lambda order: order.note == "stop")
        Order.objects.update(note="stop")

        assert run_at(row, later).state == State.CANCELLED

    def test_that_raise_fail_the_attempt(self, work, run_at, later):
        seen = []
        row = work(lambda job, order: seen.append(1), only_if=lambda order: order.nothing)

        done = run_at(row, later)

        assert (done.state, done.failures, seen) == (State.RETRYABLE, 1, [])
        assert "has no attribute 'nothing'" in done.reason


class TestTheLastLook:
    def test_sees_that_the_run_ended(self, work, run_at, later):
        """The row was left open by a write that no code of ours made."""
        row = work()
        TimelineRun.objects.update(ended_at=later, end_reason="closed")

        done = run_at(row, later)

        assert (done.state, done.reason_code, done.reason) == (State.CANCELLED, "exit", "closed")

    @pytest.mark.parametrize("after_start", [timedelta(0), timedelta(hours=1)])
    def test_sees_an_exit_that_no_code_saw(self, work, run_at, later, order, now, after_start):
        """Of what happened at the very moment of the start, what was recorded after it counts."""
        seen = []
        row = work(lambda job, order: seen.append(1))
        self.insert(order, now + after_start)

        done = run_at(row, later)

        assert (done.state, done.reason_code, done.reason) == (State.CANCELLED, "exit", "closed")
        assert seen == []

    @pytest.mark.parametrize("change", [{"name": "order.other"}, {"entity_id": "999"}, {"hours": -1}])
    def test_passes_over_an_event_that_is_no_exit_of_this_run(self, work, run_at, later, order, now, change):
        row = work()
        self.insert(order, now + timedelta(hours=change.pop("hours", 1)), **change)

        assert run_at(row, later).state == State.COMPLETED

    def insert(self, order, at, **columns):
        named = {"name": "order.closed", "entity_label": "testapp.order", "entity_id": str(order.pk)} | columns
        Event.objects.create(**named, occurred_at=at, recorded_at=at)

    def test_sees_that_the_entity_is_gone(self, work, run_at, later, order):
        row = work()
        Order.objects.filter(pk=order.pk)._raw_delete("default")

        done = run_at(row, later)

        assert (done.state, done.reason_code) == (State.CANCELLED, "entity_gone")
        assert TimelineRun.objects.get().ended_at == later

    def test_sees_that_the_anchor_changed(self, work, run_at, order, now):
        """A bulk update fires no signal: what was due then is superseded, and its next revision is at the new time."""
        seen = []
        Order.objects.update(ships_at=now + timedelta(days=1))
        row = work(lambda job, order: seen.append(job.now), at("ships_at"))
        Order.objects.update(ships_at=now + timedelta(days=9))

        done = run_at(row, now + timedelta(days=1))

        assert (done.state, done.reason_code, seen) == (State.CANCELLED, "superseded", [])
        again = ScheduledTask.objects.get(revision=2)
        assert (again.previous, again.state, again.scheduled_at) == (row, State.SCHEDULED, now + timedelta(days=9))
        assert run_at(again, now + timedelta(days=9)).state == State.COMPLETED

    def test_sees_that_the_anchor_is_not_set_any_more(self, work, run_at, now):
        Order.objects.update(ships_at=now)
        row = work(when=at("ships_at"))
        Order.objects.update(ships_at=None)

        done = run_at(row, now)

        assert (done.state, done.reason_code) == (State.CANCELLED, "superseded")
        assert not ScheduledTask.objects.open().exists()
        assert TimelineRun.objects.get().is_open

    def test_sees_that_it_is_too_late(self, work, run_at, later):
        seen = []
        row = work(lambda job, order: seen.append(1), expires=timedelta(hours=2))

        done = run_at(row, later + timedelta(hours=2))

        assert (done.state, done.reason_code, seen) == (State.CANCELLED, "expired", [])
        assert TimelineRun.objects.get().is_finished

    def test_lets_run_what_is_late_but_not_too_late(self, work, run_at, later):
        row = work(expires=timedelta(hours=2))

        assert run_at(row, later + timedelta(hours=1, minutes=59)).state == State.COMPLETED

    def test_sees_that_the_schedule_was_changed_to_a_later_one(self, work, run_at, later, now):
        row = work()
        work(when=after(days=8))

        done = run_at(row, later)

        assert (done.state, done.reason_code) == (State.CANCELLED, "superseded")
        assert ScheduledTask.objects.get(revision=2).scheduled_at == now + timedelta(days=8)

    def test_lets_run_what_was_changed_to_an_earlier_time(self, work, run_at, later):
        row = work()
        work(when=after(hours=1))

        assert run_at(row, later).state == State.COMPLETED

    def test_asks_an_ad_hoc_task_for_no_anchor(self, work, run_at, later, order, emit_at, schedule_at):
        work()
        row = schedule_at("job.ad_hoc", order, later, later).task
        emit_at("order.closed", order, later)

        assert run_at(row, later).state == State.COMPLETED


class TestRetries:
    @pytest.mark.parametrize("atomic", [True, False])
    def test_wait_within_the_bounds_of_the_policy(self, work, run_at, later, atomic):
        retry = Retry(max_attempts=4, base=timedelta(seconds=10), factor=3, jitter=0.5, cap=timedelta(seconds=60))
        row = work(self.boom, retry=retry, atomic=atomic)
        moment = later

        for least, most in ((10, 15), (30, 45), (60, 60)):
            done = run_at(row, moment)
            assert done.state == State.RETRYABLE
            assert timedelta(seconds=least) <= done.scheduled_at - moment <= timedelta(seconds=most)
            assert run_at(row, done.scheduled_at - timedelta(milliseconds=1)) is None
            moment = done.scheduled_at

        assert run_at(row, moment).state == State.DISCARDED

    def boom(self, job, order):
        raise ValueError("boom")

    def test_end_when_the_budget_is_spent(self, work, run_at, later):
        row = work(self.boom, retry=Retry(max_attempts=2, jitter=0))
        run_at(row, later)

        done = run_at(row, later + timedelta(hours=1))

        assert (done.state, done.failures, done.attempt) == (State.DISCARDED, 2, 2)
        assert (done.reason_code, done.reason, done.error) == ("error", "boom", "ValueError: boom")
        assert TimelineRun.objects.get().is_finished

    def test_take_the_budget_of_the_settings_where_none_is_declared(self, work, run_at, later, settings):
        settings.TIMELINE = {"MAX_ATTEMPTS": 1}

        assert run_at(work(self.boom), later).state == State.DISCARDED

    def test_complete_once_the_handler_succeeds(self, work, run_at, later):
        def handler(job, order):
            if job.task.attempt < 3:
                raise ValueError("not yet")
            return "done"

        row = work(handler, retry=Retry(max_attempts=3))
        for hour in range(3):
            run_at(row, later + timedelta(hours=hour))

        row.refresh_from_db()
        assert (row.state, row.result, row.failures, row.attempt) == (State.COMPLETED, "done", 2, 3)
        assert row.reason_code == "done"

    def test_leave_class_message_and_traceback_in_the_log(self, work, run_at, later):
        row = work(self.boom)

        run_at(row, later)

        error = row.log.get(to_state=State.RETRYABLE).detail["error"]
        assert (error["class"], error["message"]) == ("ValueError", "boom")
        assert error["traceback"].startswith("Traceback (most recent call last)")
        assert 'raise ValueError("boom")' in error["traceback"]

    def test_trim_what_is_too_long(self, work, run_at, later):
        def handler(job, order):
            raise ValueError("x" * 100_000 + "end\x00\ud800")

        row = work(handler)
        run_at(row, later)

        error = row.log.get(to_state=State.RETRYABLE).detail["error"]
        assert len(error["message"]) == 2_000
        assert len(error["traceback"]) <= 8_001
        assert error["traceback"].startswith("…x")
        assert "\x00" not in error["traceback"]

    def test_survive_an_error_that_cannot_be_shown(self, work, run_at, later):
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError("no text")

        def handler(job, order):
            raise Odd

        done = run_at(work(handler), later)

        assert (done.state, done.failures) == (State.RETRYABLE, 1)

    def test_do_not_count_when_the_database_was_locked(self, work, run_at, later):
        def handler(job, order):
            locked = sqlite3.OperationalError("database is locked")
            locked.sqlite_errorname = "SQLITE_BUSY"
            raise OperationalError("database is locked") from locked

        row = work(handler, retry=Retry(max_attempts=1))

        done = run_at(row, later)

        assert (done.state, done.failures, done.reason_code) == (State.RETRYABLE, 0, "error")

    def test_count_another_error_of_the_database(self, work, run_at, later):
        def handler(job, order):
            with connection.cursor() as cursor:
                cursor.execute("SELECT nothing FROM nowhere")

        done = run_at(work(handler, retry=Retry(max_attempts=1)), later)

        assert (done.state, done.failures) == (State.DISCARDED, 1)


class TestWhatAHandlerRaises:
    def raising(self, error):
        def handler(job, order):
            Effect.objects.create(name="tried")
            raise error

        return handler

    @pytest.mark.parametrize("atomic", [True, False])
    def test_cancel_ends_it_cancelled(self, work, run_at, later, atomic):
        done = run_at(work(self.raising(Cancel("not wanted")), atomic=atomic), later)

        assert (done.state, done.reason_code, done.reason) == (State.CANCELLED, "handler", "not wanted")
        assert (done.failures, done.error) == (0, "")

    @pytest.mark.parametrize("atomic", [True, False])
    def test_discard_ends_it_without_a_retry(self, work, run_at, later, atomic):
        done = run_at(work(self.raising(Discard("no such address")), atomic=atomic), later)

        assert (done.state, done.reason_code, done.reason) == (State.DISCARDED, "handler", "no such address")
        assert done.failures == 1

    @pytest.mark.parametrize("atomic", [True, False])
    def test_retry_after_waits_just_so_long(self, work, run_at, later, atomic):
        row = work(self.raising(RetryAfter(timedelta(minutes=7), "busy")), atomic=atomic)

        done = run_at(row, later)

        assert (done.state, done.scheduled_at) == (State.RETRYABLE, later + timedelta(minutes=7))
        assert (done.reason_code, done.reason, done.failures) == ("retry_after", "busy", 1)

    def test_retry_after_counts_against_the_budget(self, work, run_at, later):
        row = work(self.raising(RetryAfter(timedelta(minutes=7))), retry=Retry(max_attempts=1))

        assert run_at(row, later).state == State.DISCARDED

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


class TestTheContext:
    def test_is_there_in_the_handler(self, work, run_at, later, order, now):
        seen = {}

        def handler(job, entity):
            seen.update(task=job.task, run=job.run, event=job.event, now=job.now, lost=job.lost, entity=entity)
            seen.update(state=job.task.state, attempt=job.task.attempt)

        row = work(handler)
        run_at(row, later)

        assert (seen["task"], seen["run"], seen["event"]) == (row, TimelineRun.objects.get(), None)
        assert (seen["now"], seen["lost"], seen["entity"]) == (later, False, order)
        assert (seen["state"], seen["attempt"]) == (State.ACTIVE, 1)

    def test_has_the_event_that_started_the_run(self, order, now, emit_at):
        class Job(Timeline):
            entity = "testapp.Order"
            starts_on = "order.placed"

            @task(after(days=1))
            def work(self, order):
                return self.event.payload

        with only_timelines(Job):
            emit_at("order.placed", order, now - timedelta(days=1), payload={"n": 1})
            [done] = run(task_ids=[ScheduledTask.objects.get().pk], clock=lambda: now, using="default")

        assert done.result == {"n": 1}

    @pytest.mark.parametrize(
        ("zone", "language", "told"),
        [
            ("Asia/Tokyo", "de", ["Asia/Tokyo", "de"]),
            ("", "", ["UTC", "en"]),
            ("Nowhere/Land", "", ["UTC", "en"]),
        ],
    )
    def test_has_the_entitys_zone_and_language(self, work, run_at, later, zone, language, told):
        Order.objects.update(zone=zone, language=language)
        row = work(lambda job, order: [timezone.get_current_timezone_name(), translation.get_language()])

        done = run_at(row, later)

        assert done.result == told
        assert (timezone.get_current_timezone_name(), translation.get_language()) == ("UTC", "en")

    def test_says_whether_the_attempt_before_was_lost(self, work, run_at, later, let_lease_run_out):
        row = work(lambda job, order: job.lost)
        self.lose(row, later, run_at, let_lease_run_out)

        assert run_at(row, later).result is True

    def test_still_says_so_after_an_operator_hastened_it(self, work, run_at, later, let_lease_run_out):
        row = work(lambda job, order: job.lost)
        self.lose(row, later, run_at, let_lease_run_out)
        run_now(task_ids=[row.pk], reason=OPERATOR, now=later, using="default")

        assert run_at(row, later).result is True

    def test_does_not_say_so_of_a_failed_one(self, work, run_at, later, let_lease_run_out):
        def handler(job, order):
            if job.task.attempt == 2:
                raise ValueError("boom")
            return job.lost

        row = work(handler)
        self.lose(row, later, run_at, let_lease_run_out)
        run_at(row, later)

        assert run_at(row, later + timedelta(hours=1)).result is False

    def lose(self, row, moment, run_at, let_lease_run_out):
        """Let the worker of the first attempt die."""

        class Died(BaseException):
            pass

        def die(active):
            raise Died

        with pytest.raises(Died):
            run_at(row, moment, watch=AtEntry(die))
        let_lease_run_out(row)
        rescue(now=moment, using="default")


class TestTheIdempotencyKey:
    @pytest.fixture
    def key_of(self, run_at):
        """Run a task and give the key its handler saw."""
        return lambda row, moment: (run_at(row, moment), self.keys[-1])[1]

    def handler(self, job, order):
        self.keys.append(job.idempotency_key)
        if order.note == "fail":
            raise ValueError("boom")

    @pytest.fixture(autouse=True)
    def _fresh(self):
        self.keys = []

    def test_is_the_id_of_the_row(self, work, key_of, later):
        row = work(self.handler)

        assert key_of(row, later) == row.pk

    def test_survives_retries(self, work, key_of, later):
        Order.objects.update(note="fail")
        row = work(self.handler)

        assert key_of(row, later) == key_of(row, later + timedelta(hours=1)) == row.pk
        assert len(self.keys) == 2

    def test_survives_moves_and_redrives_of_what_did_not_complete(self, work, key_of, later):
        Order.objects.update(note="fail")
        row = work(self.handler, retry=Retry(max_attempts=1))
        stage(now=later, using="default")
        [moved] = move(task_ids=[row.pk], at=later, reason=OPERATOR, now=later, using="default")
        assert key_of(moved, later) == row.pk
        [redriven] = redrive(task_ids=[moved.pk], reason=OPERATOR, now=later, using="default")

        assert key_of(redriven, later) == row.pk
        assert len({row.pk, moved.pk, redriven.pk}) == 3

    def test_is_another_after_a_completed_one(self, work, key_of, later):
        row = work(self.handler)
        assert key_of(row, later) == row.pk
        [redriven] = redrive(task_ids=[row.pk], reason=OPERATOR, now=later, using="default")

        assert key_of(redriven, later) == redriven.pk


class TestAWatchThatStops:
    class After(Watch):
        """Stops after so many tasks."""

        def __init__(self, count):
            self.left_over = count
            self.log = []

        def stopping(self):
            self.left_over -= 1
            return self.left_over < 0

        def entered(self, task):
            self.log.append(("entered", task.pk))

        def left(self, task):
            self.log.append(("left", task.pk))

    def test_has_the_rest_released(self, work, later, order, schedule_at):
        work()
        rows = [schedule_at("job.ad_hoc", order, later, later).task for _ in range(3)]
        watch = self.After(1)

        done = run(task_ids=[row.pk for row in rows], clock=lambda: later, using="default", watch=watch)

        assert [row.pk for row in done] == [rows[0].pk]
        for row in rows[1:]:
            row.refresh_from_db()
            assert (row.state, row.reason_code, row.scheduled_at) == (State.RETRYABLE, "released", later)
            assert (row.attempt, row.failures, row.lost, row.lease_expires_at) == (1, 0, 0, None)
        ids = [row.pk for row in rows]
        assert watch.log == [("entered", pk) for pk in ids] + [("left", pk) for pk in ids]

    def test_lets_the_released_run_again(self, work, run_at, later):
        row = work(lambda job, order: job.task.attempt)
        run_at(row, later, watch=self.After(0))

        assert run_at(row, later).result == 2

    def test_is_told_that_a_task_is_left_also_when_the_run_breaks_off(self, work, later):
        class Broken(BaseException):
            pass

        def handler(job, order):
            raise Broken

        row, watch = work(handler), self.After(9)

        with pytest.raises(Broken):
            run(task_ids=[row.pk], clock=lambda: later, using="default", watch=watch)

        assert watch.log == [("entered", row.pk), ("left", row.pk)]
        row.refresh_from_db()
        assert row.state in OPEN


class TestQueries:
    def test_of_the_last_look_are_as_many_for_a_thousand_as_for_ten(self, later, now, statements_of, start_at):
        """Nothing is read row by row before a handler is entered: not exits, entities or guards."""

        class Job(Timeline):
            entity = "testapp.Order"
            exits = {"order.closed": "closed"}

            @task(after(days=1), unless=Q(paid=True))
            def work(self, order):
                return None

        asked = []
        with only_timelines(Job):
            for count in (10, 1000):
                for order in Order.objects.bulk_create([Order() for _ in range(count)]):
                    start_at("job", order, now)
                ids = list(ScheduledTask.objects.filter(state=State.SCHEDULED).values_list("pk", flat=True))
                attempts = begin(ids, token=None, worker="", now=later, using="default")
                asked.append(statements_of(lambda attempts=attempts: look(attempts, now=later, using="default")))
                assert len(attempts) == count

        assert asked[0] == asked[1]
