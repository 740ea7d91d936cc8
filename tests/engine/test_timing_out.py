"""Time out: an attempt fails whose handler takes longer than it may, whether or not it comes back."""

import logging
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection

from timeline import Retry
from timeline.engine.attempts import begin_attempts
from timeline.engine.failures import MAX_TRACEBACK
from timeline.engine.finalize import fail_for_time, let_go_if_timed_out, log_lost
from timeline.exceptions import LeaseLost, TimedOut
from timeline.models import ScheduledTask

MINUTE = timedelta(minutes=1)
TASK = UUID(int=7)


@pytest.fixture
def begun(crowd, later):
    """Begin so many attempts: ``begun(3, …)``."""

    def begin(count, **options):
        ids = [row.pk for row in crowd(count, **options)]
        return begin_attempts(ids, token=None, worker="", now=later, using="default")

    return begin


@pytest.fixture
def fail(later):
    """Let these have hung for too long, there: ``fail(attempts, "stack")``."""
    return lambda attempts, stack="": fail_for_time(attempts, MINUTE, stack, now=later, using="default", keeper=None)


class TestFailForTime:
    def test_fails_the_attempt_and_says_where_it_hung(self, begun, fail):
        [attempt] = begun(1)

        [task] = fail([attempt], "File one, line 1")

        row = ScheduledTask.objects.get(pk=attempt.task.pk)
        assert task == row
        assert (row.state, row.failures, row.attempt) == ("retryable", 1, 1)
        assert (row.reason_code, row.reason) == ("timeout", "it took longer than 0:01:00")
        assert row.log.latest("seq").detail["error"] == {
            "class": "timeline.exceptions.TimedOut",
            "message": "it took longer than 0:01:00",
            "traceback": "File one, line 1",
        }

    def test_ends_it_with_its_last_attempt(self, begun, fail):
        [task] = fail(begun(1, retry=Retry(max_attempts=1)))

        assert (task.state, task.reason_code) == ("discarded", "timeout")

    def test_blames_none_of_several_that_one_call_was_for(self, begun, fail):
        done = fail(begun(2, retry=Retry(max_attempts=1)))

        assert [(task.state, task.failures) for task in done] == [("retryable", 0)] * 2

    def test_keeps_the_end_of_a_long_stack(self, begun, fail):
        [attempt] = begun(1)

        fail([attempt], "x" * MAX_TRACEBACK + "here")

        traceback = ScheduledTask.objects.get(pk=attempt.task.pk).log.latest("seq").detail["error"]["traceback"]
        assert len(traceback) == MAX_TRACEBACK
        assert traceback.endswith("xhere")


class TestLogLost:
    @pytest.mark.parametrize(
        ("error", "level"), [(LeaseLost(TASK, 2), logging.WARNING), (TimedOut(TASK, 2, MINUTE), logging.INFO)]
    )
    def test_is_quiet_about_what_has_a_line_of_its_own(self, caplog, error, level):
        with caplog.at_level(logging.INFO, "timeline"):
            log_lost(error)

        assert [record.levelno for record in caplog.records] == [level]
        assert str(TASK) in caplog.text


@pytest.mark.django_db(transaction=True)
class TestLetGoIfTimedOut:
    @pytest.mark.parametrize(("error", "is_let_go"), [(TimedOut(TASK, 1, MINUTE), True), (LeaseLost(TASK, 1), False)])
    def test_closes_this_threads_connections_after_a_handler_was_broken_off(self, error, is_let_go):
        connection.ensure_connection()

        let_go_if_timed_out(error)

        assert (connection.connection is None) is is_let_go
