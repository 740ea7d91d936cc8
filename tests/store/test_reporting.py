"""What the log of the process says of attempts that failed."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.db import transaction

from timeline import Discard, Retry, RetryAfter
from timeline.dispatch.rescue import rescue
from timeline.models import ScheduledTask

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lines(caplog):
    """What was logged of endings: ``lines()``."""
    caplog.set_level(logging.DEBUG, "timeline")
    return lambda: [record for record in caplog.records if record.name == "timeline.endings"]


def refuse(job, order):
    """A handler that fails."""
    raise ValueError("no such address")


class TestLog:
    def test_warns_of_a_failed_attempt_that_is_tried_again(self, work, run_at, later, order, lines):
        row = work(refuse)

        run_at(row, later)

        [line] = lines()
        assert (line.levelname, line.exc_info) == ("WARNING", None)
        assert f"job.work of testapp.order {order.pk} failed at attempt 1 and is tried again at " in line.getMessage()
        assert f": ValueError: no such address (task {row.pk})" in line.getMessage()
        assert (line.task_id, line.task_key, line.attempt) == (str(row.pk), "job.work", 1)
        assert (line.entity, line.run_id, line.reason_code) == (f"testapp.order {order.pk}", str(row.run_id), "error")

    @pytest.mark.parametrize("atomic", [True, False])
    def test_tells_a_discard_as_an_error_with_its_traceback(self, work, run_at, later, lines, atomic):
        """An error tracker groups by the exception itself."""
        row = work(refuse, atomic=atomic, retry=Retry(max_attempts=1))

        run_at(row, later)

        [line] = lines()
        assert line.levelname == "ERROR"
        assert "is discarded after attempt 1: ValueError: no such address" in line.getMessage()
        kind, error, traceback = line.exc_info
        assert (kind, str(error), line.task_id) == (ValueError, "no such address", str(row.pk))
        assert traceback is not None

    def test_tells_the_discard_of_a_lost_worker_without_one(self, make_task, settings, let_lease_run_out, now, lines):
        settings.TIMELINE = {"MAX_LOST": 1}
        row = make_task(state="active", attempt=2, worker="w1")
        let_lease_run_out(row)

        rescue(now=now, using="default")

        [line] = lines()
        assert (line.levelname, line.exc_info, line.reason_code) == ("ERROR", None, "worker_lost")
        assert (
            "trial.remind of the system is discarded after attempt 2: worker w1 was not heard of" in line.getMessage()
        )

    def test_tells_what_a_lost_worker_had_begun_in_one_line(self, make_task, let_lease_run_out, now, lines):
        rows = [make_task(state="active", attempt=1, worker="w1") for _ in range(3)]
        for row in rows:
            let_lease_run_out(row)

        rescue(now=now, using="default")

        [line] = lines()
        assert (line.levelname, sorted(line.task_ids)) == ("WARNING", sorted(str(row.pk) for row in rows))
        assert line.getMessage().startswith("3 tasks failed together and are tried again: worker w1 was not heard of")

    def test_tells_a_call_for_many_that_failed_in_one_line(self, crowd, run_all, lines):
        rows = crowd(3, refuse, bulk=10)

        run_all(rows)

        [line] = lines()
        assert line.getMessage().startswith("3 tasks failed together and are tried again: ValueError: no such address")

    def test_takes_it_lightly_that_a_handler_asks_for_later(self, work, run_at, later, lines):
        def ask(job, order):
            raise RetryAfter(timedelta(hours=1))

        run_at(work(ask), later)

        assert [line.levelname for line in lines()] == ["INFO"]

    def test_is_silent_of_what_ends_well(self, crowd, run_all, lines):
        run_all(crowd(2))

        assert lines() == []

    def test_is_silent_of_what_was_rolled_back(self, make_task, let_lease_run_out, now, lines):
        let_lease_run_out(make_task(state="active", attempt=1))

        with transaction.atomic():
            rescue(now=now, using="default")
            transaction.set_rollback(True)

        assert ScheduledTask.objects.get().state == "active"
        assert lines() == []

    def test_keeps_what_a_row_holds_to_itself(self, work, schedule_at, order, run_at, later, now, lines):
        work(refuse)
        row = schedule_at("job.ad_hoc", order, later, now, payload={"note": "hunter2"}).task

        run_at(row, later)

        [line] = lines()
        assert "hunter2" not in f"{vars(line)}"

    def test_has_one_short_line_for_a_long_message(self, work, run_at, later, lines):
        def fail(job, order):
            raise Discard("first\nsecond " + "x" * 1000)

        run_at(work(fail), later)

        [line] = lines()
        assert "Discard: first second xxx" in line.getMessage()
        assert len(line.getMessage()) < 400
