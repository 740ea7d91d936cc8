"""Settle: how tasks ended is written with what follows from it."""

from datetime import timedelta

import pytest

from timeline import Discard
from timeline.engine.attempts import begin_attempts
from timeline.engine.finalize import settle
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.models import ScheduledTask, TimelineRun
from timeline.store.transition import Write

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
