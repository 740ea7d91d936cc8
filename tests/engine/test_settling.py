"""Settle: how tasks ended is written with what follows from it."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.features.fan_out.settlement import rows_of, settlement
from tests.testapp.models import Order
from timeline import Discard
from timeline.engine.attempts import begin_attempts
from timeline.engine.finalize import settle
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.models import ScheduledTask, TimelineRun
from timeline.store.transition import Write
from timeline.testing import only_timelines

DONE = Reason(ReasonCode.DONE)


class TestAnEnding:
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


class TestSettle:
    @pytest.fixture
    def active(self, crowd, later):
        """So many tasks that are being run, each in a run of its own."""

        def begin(count):
            ids = [row.pk for row in crowd(count)]
            begun = begin_attempts(ids, token=None, worker="", now=later, using="default")
            return [attempt.task for attempt in begun]

        return begin

    def complete(self, tasks, later):
        writes = [Write(task=task, triggers=(Trigger.COMPLETE,), reason=DONE, result="1") for task in tasks]
        return settle(writes, now=later, using="default")

    def follow_ups(self):
        return ScheduledTask.objects.filter(task_key="crowd.follow")

    def test_gives_those_whose_guard_held_in_the_order_given(self, active, later):
        first, second, third = active(3)
        ScheduledTask.objects.filter(pk=second.pk).update(attempt=2)

        done = self.complete([third, second, first], later)

        assert done == [third, first]
        assert {row.entity_id for row in self.follow_ups()} == {first.entity_id, third.entity_id}

    def test_lets_nothing_follow_in_a_run_that_has_ended_meanwhile(self, active, later):
        [task] = active(1)
        TimelineRun.objects.update(ended_at=later, end_reason="closed")

        assert self.complete([task], later) == [task]

        assert TimelineRun.objects.get().end_reason == "closed"
        assert not self.follow_ups().exists()

    def test_reconciles_nothing_for_what_ends_no_task(self, active, later, statements_of):
        [task] = active(1)
        again = Write(task=task, triggers=(Trigger.RETRY,), scheduled_at=later + timedelta(hours=1), reason=DONE)

        asked = statements_of(lambda: settle([again], now=later, using="default"))

        assert not any("testapp_order" in sql or "timeline_timelinerun" in sql for sql in asked)
        assert ScheduledTask.objects.get(pk=task.pk).state == State.RETRYABLE


class TestTheEndingOfOneOfMany:
    @pytest.fixture
    def batches(self, db, now, later, run_at, start_at):
        """So many batches of a new order, fanned out."""
        known = []

        def have(count):
            names = [str(number) for number in range(count)]
            known.append(only_timelines(settlement(lambda job: job.fan_out(job.settle, names))))
            known[-1].__enter__()
            run = start_at("settlement", Order.objects.create(), now).run
            run_at(run.tasks.get(), later)
            return list(run.tasks.filter(task_key="settlement.settle"))

        yield have
        for context in reversed(known):
            context.__exit__(None, None, None)

    def end(self, rows, later, **given):
        begun = begin_attempts([row.pk for row in rows], token=None, worker="", now=later, using="default")
        writes = [Write(task=one.task, triggers=(Trigger.COMPLETE,), reason=DONE) for one in begun]
        return lambda: settle(writes, now=later, using="default", **given)

    def test_reads_none_of_the_others(self, batches, later):
        """Its run is looked at again when the last of them ends: until then, one probe says that there are others."""
        first, *_others = batches(1_000)
        ending = self.end([first], later)

        with CaptureQueriesContext(connection) as queries:
            ending()

        assert ScheduledTask.objects.get(pk=first.pk).state == State.COMPLETED
        of_tasks = [query["sql"] for query in queries if "timeline_scheduledtask" in query["sql"]]
        probes = [sql for sql in of_tasks if not sql.startswith(("UPDATE", "INSERT", "WITH"))]
        assert len(probes) == 1
        assert "SELECT 1" in probes[0] or "LIMIT 1" in probes[0]
        assert rows_of("report") == []

    def test_takes_as_many_statements_whether_they_are_three_or_a_thousand(self, batches, later, statements_of):
        few = statements_of(self.end(batches(3)[:1], later))
        many = statements_of(self.end(batches(1_000)[:1], later))

        assert len(many) == len(few)

    def test_lets_what_waits_follow_with_the_last(self, batches, later):
        first, second, third = batches(3)
        self.end([first], later)()
        assert rows_of("report") == []

        self.end([second, third], later + timedelta(hours=1))()

        [report], [clean_up] = rows_of("report"), rows_of("clean_up")
        assert report.anchor_value == clean_up.anchor_value == later + timedelta(hours=1)

    def test_leaves_no_run_open_if_several_end_together_and_nothing_waits(self, batches, later):
        rows = batches(2)

        done = self.end(rows, later, wait=False)()

        assert len(done) == 2
        assert len(rows_of("report")) == 1
