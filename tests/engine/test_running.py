"""Run: which tasks are run, how they end, and what is left when a worker stops."""

from datetime import timedelta
from uuid import uuid4

import pytest

from timeline import Timeline, after, task
from timeline.dispatch.claim import claim
from timeline.dispatch.poll import stage
from timeline.engine.groups import Watch, run
from timeline.lifecycle import OPEN, Reason, State
from timeline.models import ScheduledTask
from timeline.testing import only_timelines

OPERATOR = Reason.operator("asked for", "ada")


class TestRun:
    def test_completes_with_what_the_handler_returns(self, work, run_at, later):
        row = work(lambda job, order: {"sent": [1, None, "ü"]})

        done = run_at(row, later, worker="w1")

        row.refresh_from_db()
        assert done == row
        assert (row.state, row.result, row.reason_code) == (State.COMPLETED, {"sent": [1, None, "ü"]}, "done")
        assert (row.attempt, row.failures, row.worker) == (1, 0, "w1")
        assert (row.started_at, row.finished_at, row.error) == (later, later, "")

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


class TestAWatchThatStops:
    class After(Watch):
        """Stops after so many tasks."""

        def __init__(self, count):
            self.left_over = count
            self.log = []

        def stopping(self):
            return self.left_over <= 0

        def took(self, task_key, count, seconds):
            self.left_over -= count

        def entered(self, *tasks):
            self.log.extend(("entered", task.pk) for task in tasks)

        def left(self, *tasks):
            self.log.extend(("left", task.pk) for task in tasks)

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
