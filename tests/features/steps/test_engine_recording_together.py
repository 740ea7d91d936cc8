"""Steps of handlers that run side by side are recorded together; each is answered for once it is committed."""

import asyncio
import gc

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from tests.postgresql.meanwhile import lost_connection
from tests.testapp.models import Order
from timeline import Timeline, step, task
from timeline.engine.groups import run
from timeline.features.steps import recorder
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepRecord
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

HANDLERS = 20


class Fetching(Timeline):
    """Two steps, one after the other."""

    entity = "testapp.Order"
    name = "job"

    @task(atomic=False)
    async def work(self, order):
        return [await self.fetch.keyed(key)(order.pk) for key in "ab"]

    @step(atomic=False)
    async def fetch(self, number):
        await asyncio.sleep(0)
        return {"order": number}


@pytest.fixture
def rows(schedule_at, now):
    with only_timelines(Fetching):
        orders = Order.objects.bulk_create(Order() for _ in range(HANDLERS))
        yield [schedule_at("job.work", order, now, now).task for order in orders]


def run_all(rows, now):
    return run(task_ids=[row.pk for row in rows], clock=lambda: now, using="default")


def inserts(queries):
    return [
        query["sql"]
        for query in queries
        if "INSERT INTO timeline_step" in query["sql"] or "timeline_record_step" in query["sql"]
    ]


class TestTogether:
    def test_each_is_recorded_and_answered_for(self, rows, now):
        done = run_all(rows, now)

        assert {task.state for task in done} == {State.COMPLETED}
        assert sorted(task.result[1]["order"] for task in done) == sorted(int(row.entity_id) for row in rows)
        assert StepRecord.objects.count() == 2 * HANDLERS
        assert {(record.origin, record.by_task, record.attempt) for record in StepRecord.objects.all()} == {
            (row.pk, row.pk, 1) for row in rows
        }

    @pytest.mark.only_postgresql
    def test_take_few_statements(self, rows, now):
        with CaptureQueriesContext(connection) as queries:
            run_all(rows, now)

        assert len(inserts(queries)) <= HANDLERS // 2

    @pytest.mark.only_postgresql
    def test_one_that_cannot_be_written_keeps_no_other_from_it(self, rows, now):
        """Each is written by itself then: one is no worker's any more, the others are recorded."""

        def wrapper(execute, sql, *given):
            if "FROM unnest(" in sql and "INSERT INTO timeline_step" in sql:
                ScheduledTask.objects.filter(pk=rows[3].pk).update(attempt=2)
                raise OperationalError("no luck")
            return execute(sql, *given)

        with connection.execute_wrapper(wrapper):
            done = run_all(rows, now)

        assert len(done) == HANDLERS - 1
        assert StepRecord.objects.exclude(origin=rows[3].pk).count() == 2 * (HANDLERS - 1)

    @pytest.mark.only_postgresql
    def test_one_that_is_no_workers_any_more_is_left_out(self, rows, now):
        ours = []

        def wrapper(execute, sql, *given):
            if "FROM unnest(" in sql and "INSERT INTO timeline_step" in sql and not ours:
                ours.append(ScheduledTask.objects.filter(pk=rows[3].pk).update(attempt=2))
            return execute(sql, *given)

        with connection.execute_wrapper(wrapper):
            done = run_all(rows, now)

        assert ours == [1]
        assert rows[3].pk not in {task.pk for task in done}
        assert len(done) == HANDLERS - 1

    def test_nobody_waits_for_ever_where_the_writing_raises(self, rows, now, monkeypatch):
        """Each is written by itself then."""
        together, record_step = [], recorder.record_step
        stored = recorder._stored

        def write_together(steps, using):
            together.append(len(steps))
            try:
                return stored(steps, using)
            finally:
                together.pop()

        def fail(*steps, using):
            if together:
                raise RuntimeError("no luck")
            return record_step(*steps, using=using)

        monkeypatch.setattr(recorder, "_stored", write_together)
        for name in ("record_step", "record_steps"):
            monkeypatch.setattr(recorder, name, fail)

        assert {task.state for task in run_all(rows, now)} == {State.COMPLETED}

    def test_what_ends_the_writing_ends_all_who_wait_for_it(self, rows, now, monkeypatch):
        class End(BaseException):
            """Like that of a process."""

        def end(*steps, using):
            raise End

        for name in ("record_step", "record_steps"):
            monkeypatch.setattr(recorder, name, end)

        with pytest.raises(End):
            run_all(rows, now)
        gc.collect()  # The others' tasks say here that nobody asked for their ends, not after all tests.
        assert not StepRecord.objects.exists()

    @pytest.mark.only_postgresql
    def test_a_lost_answer_repeats_no_step(self, rows, now):
        lost = []

        def wrapper(execute, sql, *given):
            answer = execute(sql, *given)
            if "FROM unnest(" in sql and "INSERT INTO timeline_step" in sql and not lost:
                lost.append(sql)
                raise lost_connection()
            return answer

        with connection.execute_wrapper(wrapper):
            done = run_all(rows, now)

        assert {task.state for task in done} == {State.COMPLETED}
        assert StepRecord.objects.count() == 2 * HANDLERS
