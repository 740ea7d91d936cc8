"""Groups one after the other: each is begun when the one before has run. Ahead of that: test_pipeline.py."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from tests.testapp.models import Order
from timeline import Timeline, task
from timeline.dispatch.claim import ClaimedBatch
from timeline.engine.groups import Attempt, Look, begin_given
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines
from timeline.worker import group_runner
from timeline.worker.batch import run_batch
from timeline.worker.group_runner import Busy, Group, GroupRunner, look_left
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.process import PaceOfKinds

EACH = 0.004  # Seconds that a handler takes.

entered: list[str] = []


class InATest(Timeline):
    entity = "testapp.Order"

    @task(atomic=False)
    def plain(self, order):
        time.sleep(0 if entered else 1.5)
        entered.append(self.task.occurrence)


class Many(PaceOfKinds):
    def most(self, task_key, budget=None):
        return 10


@pytest.mark.only_postgresql
class TestATestsTransaction:
    def test_has_all_entered_though_one_takes_long(self, db):
        """No other thread sees what is written there."""
        entered.clear()
        with only_timelines(InATest):
            at = timezone.now() - timedelta(seconds=1)
            rows = [schedule("in_a_test.plain", Order.objects.create(), at=at, key=str(each)).task for each in range(3)]
            watch = Heartbeat("default", stopping=bool, pace=Many())
            batch = ClaimedBatch("", "", uuid4(), [row.pk for row in rows])

            with watch:
                run_batch(batch, watch=watch, using="default", worker="w")

        assert entered == ["0", "1", "2"]
        assert not ScheduledTask.objects.exclude(state="completed").exists()


class TestTheLookAtWhatIsBegunAhead:
    def test_is_taken_again_if_the_last_of_them_would_be_entered_too_long_after_it(self, crowd, later, monkeypatch):
        ids = [row.pk for row in crowd(3, atomic=False)]
        [begun] = begin_given(task_ids=ids, clock=lambda: later, using="default")
        monkeypatch.setattr(group_runner, "monotonic", lambda: 100.0)

        def left(milliseconds_ago, looked, each=EACH):
            for attempt in begun:
                attempt.seen_at = 100 - milliseconds_ago / 1000
            return look_left(Group(begun, is_last=False, looked=looked), each)

        assert left(20, looked=True) is Look.DONE
        assert left(45, looked=True) is Look.DUE_LATE
        assert left(1, looked=False) is Look.DUE
        assert left(20, looked=False) is Look.DUE_LATE
        assert left(20, looked=True, each=0.03) is Look.DUE_LATE
        assert left(5, looked=True, each=0.03) is Look.DONE, "only what is left after 50 ms is looked at again"


class TestAGroup:
    def test_names_what_it_is_about_but_for_the_system(self, make_task, now):
        rows = [make_task(entity_label=label, entity_id=key) for label, key in (("testapp.order", "7"), ("", ""))]
        group = Group(
            [Attempt(row, None, None, now, lost=False, idempotency_key=row.pk) for row in rows], is_last=False
        )

        assert group.task_key == "trial.remind"
        assert group.entities == {("testapp.order", "7")}


class TestGroupRunner:
    """One group after the other, within a test's transaction."""

    @pytest.fixture
    def ready(self, crowd, later):
        """Run groups that are begun one at a time: ``ready([2, 1], handler, …)`` gives the runner, and what is noted."""

        def make(sizes, handler=lambda job, order: None, **options):
            noted = []
            rows = iter(
                crowd(sum(sizes), lambda job, order: (noted.append("enter"), handler(job, order))[1], **options)
            )

            def groups():
                for size in sizes:
                    ids = [next(rows).pk for _ in range(size)]
                    [begun] = begin_given(task_ids=ids, clock=lambda: later, using="default") if ids else [[]]
                    noted.append(f"begin {len(begun)}")
                    yield begun

            watch = Heartbeat("default", stopping=bool)
            busy = Busy()
            return GroupRunner(groups=groups(), busy=busy, clock=lambda: later, using="default", watch=watch), noted

        return make

    def test_runs_a_group_before_it_begins_the_next_one(self, ready):
        runner, noted = ready([2, 0, 1], atomic=False)

        assert runner.run() == (3, 3)

        assert noted == ["begin 2", "enter", "enter", "begin 0", "begin 1", "enter"]
        assert set(ScheduledTask.objects.filter(task_key="crowd.work").values_list("state", flat=True)) == {"completed"}

    def test_counts_as_ended_only_what_is_recorded(self, ready):
        def end_elsewhere(job, order):
            ScheduledTask.objects.filter(pk=job.task.pk).update(attempt=9)

        runner, _noted = ready([2], end_elsewhere, atomic=False)

        assert runner.run() == (2, 0)

    def test_is_nothing_where_there_is_nothing(self, ready):
        runner, noted = ready([])

        assert (runner.run(), noted) == ((0, 0), [])

    def test_says_whether_handlers_run_while_the_next_group_is_begun(self, ready):
        runner, _noted = ready([1, 1])

        runner.begin(others_run=True)
        assert runner.busy.others_run
        runner.begin()
        assert not runner.busy.others_run
