"""Attempts: what a handler is told of its own execution."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.engine.watching import AtEntry, Stopping
from tests.testapp.models import Order
from timeline import Retry, Timeline, after, task
from timeline.dispatch.poll import stage
from timeline.dispatch.rescue import rescue
from timeline.engine.attempts import begin_attempts
from timeline.engine.groups import run
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.move import move, run_now
from timeline.operations.redrive import redrive
from timeline.testing import only_timelines

OPERATOR = Reason.operator("asked for", "ada")


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

    @pytest.mark.only_postgresql
    def test_has_no_event_where_that_is_not_there(self, crowd, run_all, now, caplog):
        """An older release let a task name an event that was rolled back; nothing in PostgreSQL refuses it."""
        rows = crowd(2, lambda job, order: str(job.event), ad_hoc=True)
        ScheduledTask.objects.filter(pk=rows[0].pk).update(cause_id=UUID(int=7))

        done = run_all(rows)

        assert [(row.state, row.result) for row in done] == [(State.COMPLETED, "None")] * 2
        assert [entry.getMessage() for entry in caplog.records] == [
            f"The event {UUID(int=7)} that task {rows[0].pk} names as its cause is not there; its handler is told of none."
        ]

    def test_says_whether_the_attempt_before_was_lost(self, work, run_at, later, let_lease_run_out):
        row = work(lambda job, order: job.lost)
        self.lose(row, later, run_at, let_lease_run_out)

        assert run_at(row, later).result is True

    def test_still_says_so_after_an_operator_hastened_it(self, work, run_at, later, let_lease_run_out):
        row = work(lambda job, order: job.lost)
        self.lose(row, later, run_at, let_lease_run_out)
        run_now(task_ids=[row.pk], reason=OPERATOR, now=later, using="default")

        assert run_at(row, later).result is True

    def test_still_says_so_after_one_that_was_given_back(self, work, run_at, later, let_lease_run_out):
        """Its handler was not entered, so that nobody was told."""
        row = work(lambda job, order: job.lost)
        self.lose(row, later, run_at, let_lease_run_out)
        assert run_at(row, later, watch=Stopping()) is None

        done = run_at(row, later)

        assert (done.attempt, done.result) == (3, True)

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


class TestStart:
    def test_of_a_group_is_one_statement_with_its_log(self, crowd, later, statements_of):
        ids = [row.pk for row in crowd(50)]

        with CaptureQueriesContext(connection) as queries:
            begin_attempts(ids, token=None, worker="w", now=later, using="default")

        asked = [query["sql"] for query in queries if "FOR NO KEY" not in query["sql"][:99]]
        assert len([sql for sql in asked if "UPDATE" in sql or "timeline_start_given(" in sql]) == 1
        rows = ScheduledTask.objects.filter(pk__in=ids)
        assert set(rows.values_list("state", "attempt", "seq", "worker", "started_at")) == {
            ("active", 1, 2, "w", later)
        }
        for row in rows:
            moves = row.log.order_by("seq").values_list("seq", "from_state", "to_state", "attempt", "at")
            assert list(moves) == [
                (1, "scheduled", "available", 0, later),
                (2, "available", "active", 1, later),
            ]

    def test_gives_the_attempts_in_the_order_asked_for(self, crowd, later):
        ids = [row.pk for row in crowd(5)][::-1]

        attempts = begin_attempts(ids, token=None, worker="", now=later, using="default")

        assert [attempt.task.pk for attempt in attempts] == ids

    def test_reads_of_a_row_what_the_database_holds(self, crowd, later):
        [row] = crowd(1)

        [attempt] = begin_attempts([row.pk], token=None, worker="w", now=later, using="default")

        there = ScheduledTask.objects.get(pk=row.pk)
        fields = [field.attname for field in ScheduledTask._meta.concrete_fields]
        assert [getattr(attempt.task, name) for name in fields] == [getattr(there, name) for name in fields]
