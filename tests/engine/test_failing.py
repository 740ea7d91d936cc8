"""What a handler raises: the end it asks for, or a retry with its delays, its budget, and what does not count."""

import sqlite3
from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from tests.databases import VENDOR
from timeline import Cancel, Discard, Retry, RetryAfter
from timeline.lifecycle import State
from timeline.models import TimelineRun


def be_busy():
    locked = sqlite3.OperationalError("database is locked")
    locked.sqlite_errorname = "SQLITE_BUSY"
    raise OperationalError("database is locked") from locked


def end_our_own_backend():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


PASSING = [be_busy, *([end_our_own_backend] if VENDOR == "postgresql" else [])]


class TestWhatAHandlerRaises:
    def raising(self, error):
        def handler(job, order):
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
        row = work(lambda job, order: be_busy(), retry=Retry(max_attempts=1))

        done = run_at(row, later)

        assert (done.state, done.failures, done.reason_code) == (State.RETRYABLE, 0, "error")

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("lose", PASSING)
    def test_count_what_should_pass_once_it_does_not(self, work, run_at, later, lose):
        """Its delays grow meanwhile; it is set aside, where it can be seen, after a budget of its own."""
        retry = Retry(max_attempts=2, base=timedelta(seconds=10), factor=2, jitter=0, cap=timedelta(seconds=100))
        row, moment, ends = work(lambda job, order: lose(), retry=retry), later, []

        while len(ends) < 20 and (not ends or ends[-1][0] == State.RETRYABLE):
            done = run_at(row, moment)
            ends.append((done.state, done.failures, (done.scheduled_at - moment).total_seconds()))
            moment = max(moment, done.scheduled_at)

        spared = [(State.RETRYABLE, 0, delay) for delay in (10, 20, 40, 80, *[100] * 6)]
        assert ends[:-1] == [*spared, (State.RETRYABLE, 1, 100)]
        assert (done.state, done.failures, done.attempt, done.reason_code) == (State.DISCARDED, 2, 12, "error")
        assert done.error.startswith("django.db.utils.OperationalError: ")

    def test_count_anew_what_passes_once_there_was_another_end(self, work, run_at, later):
        def handler(job, order):
            if job.task.attempt == 3:
                raise ValueError("boom")
            be_busy()

        row, moment = work(handler, retry=Retry(max_attempts=3)), later

        for _ in range(4):
            done = run_at(row, moment)
            moment = done.scheduled_at

        entries = row.log.filter(from_state=State.ACTIVE).order_by("seq")
        assert [entry.detail.get("passing") for entry in entries] == [1, 2, None, 1]
        assert (done.state, done.failures) == (State.RETRYABLE, 1)

    def test_count_another_error_of_the_database(self, work, run_at, later):
        def handler(job, order):
            with connection.cursor() as cursor:
                cursor.execute("SELECT nothing FROM nowhere")

        done = run_at(work(handler, retry=Retry(max_attempts=1)), later)

        assert (done.state, done.failures) == (State.DISCARDED, 1)
