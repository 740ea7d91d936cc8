"""Prune: delete what has long ended, whole runs at a time."""

from datetime import datetime, timedelta

import pytest

from timeline import Timeline, after, task
from timeline.exceptions import NaiveDatetime
from timeline.lifecycle import OPEN, Reason, State
from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun
from timeline.operations.pruning import Pruned, prune
from timeline.operations.reconciling import reconcile
from timeline.operations.redriving import redrive
from timeline.testing import only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.closed": "closed"}

    @task(after(days=1))
    def pack(self, order):
        return None

    @task(after(days=2))
    def ship(self, order):
        return None


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Delivery):
        yield


@pytest.fixture
def closed(emit_at, order, now):
    """A run that ended now, with two rows and their log."""
    emit_at("order.placed", order, now, key="placed")
    emit_at("order.closed", order, now, key="closed")
    return TimelineRun.objects.get()


class TestPrune:
    def test_takes_whole_runs_that_ended_before(self, closed, later):
        pruned = prune(ended_before=later, using="default")

        assert pruned == Pruned(runs=1, tasks=2, log_entries=2)
        assert [model.objects.count() for model in (TimelineRun, ScheduledTask, LogEntry)] == [0, 0, 0]

    def test_leaves_the_events_so_that_their_keys_hold(self, closed, later, emit_at, order):
        prune(ended_before=later, using="default")

        assert Event.objects.count() == 2
        assert not emit_at("order.placed", order, later, key="placed").recorded

    def test_says_when_nothing_is_left(self, closed, later):
        prune(ended_before=later, using="default")

        assert prune(ended_before=later, using="default") == (0, 0, 0)

    def test_leaves_what_ended_then_or_later(self, closed, now):
        assert prune(ended_before=now, using="default") == (0, 0, 0)
        assert ScheduledTask.objects.count() == 2

    def test_takes_nothing_of_an_open_run(self, emit_at, run_at, order, now, later):
        """Or reconcile would make finished work again."""
        emit_at("order.placed", order, now)
        run_at(ScheduledTask.objects.get(task_key="delivery.pack"), later)

        assert prune(ended_before=later + timedelta(days=365), using="default") == (0, 0, 0)
        reconcile(entity=order, now=later, using="default")
        assert ScheduledTask.objects.filter(task_key="delivery.pack").count() == 1

    def test_leaves_an_ended_run_with_a_task_that_still_runs(self, closed, later, make_task):
        make_task(run=closed, state=State.ACTIVE)

        assert prune(ended_before=later, using="default") == (0, 0, 0)

    def test_takes_no_more_runs_than_the_limit_the_first_ended_first(self, closed, later, emit_at, order):
        emit_at("order.placed", order, later)
        emit_at("order.closed", order, later)

        pruned = prune(ended_before=later + timedelta(days=1), limit=1, using="default")

        assert pruned.runs == 1
        assert TimelineRun.objects.get().ended_at == later

    def test_refuses_a_naive_time(self, closed):
        with pytest.raises(NaiveDatetime):
            prune(ended_before=datetime(2030, 1, 1), using="default")  # noqa: DTZ001 (that is the case)


class TestPruneOfAdHocTasks:
    def test_takes_those_that_ended_before(self, make_task, later):
        make_task(state=State.COMPLETED)

        assert prune(ended_before=later, using="default") == Pruned(tasks=1)

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_leaves_open_ones(self, make_task, later, state):
        make_task(state=state)

        assert prune(ended_before=later, using="default") == (0, 0, 0)

    def test_takes_all_revisions_together(self, make_task, later):
        first = make_task(state=State.DISCARDED)
        make_task(state=State.COMPLETED, occurrence=first.occurrence, revision=2, previous=first)

        assert prune(ended_before=later, limit=1, using="default").tasks == 2

    @pytest.mark.parametrize("state", [State.SCHEDULED, State.COMPLETED])
    def test_leaves_all_while_one_is_open_or_young(self, make_task, later, state):
        first = make_task(state=State.DISCARDED)
        ends = {"finished_at": later} if state == State.COMPLETED else {}
        make_task(state=state, occurrence=first.occurrence, revision=2, previous=first, **ends)

        assert prune(ended_before=later, using="default") == (0, 0, 0)

    def test_tells_entities_apart(self, make_task, later):
        make_task(state=State.COMPLETED, occurrence="k", entity_label="testapp.order", entity_id="1")
        other = make_task(occurrence="k", entity_label="testapp.order", entity_id="2")

        assert prune(ended_before=later, using="default").tasks == 1
        assert ScheduledTask.objects.get() == other


class TestArchive:
    def test_is_given_the_rows_before_they_go(self, closed, later):
        kept = []

        prune(ended_before=later, archive=kept.append, using="default")

        [rows] = kept
        assert sorted(row["model"] for row in rows) == [
            *["timeline.logentry"] * 2,
            *["timeline.scheduledtask"] * 2,
            "timeline.timelinerun",
        ]
        assert next(row for row in rows if row["model"] == "timeline.timelinerun")["fields"]["end_reason"] == "closed"

    def test_is_not_asked_for_nothing(self, db, later):
        kept = []

        prune(ended_before=later, archive=kept.append, using="default")

        assert kept == []

    def test_that_fails_leaves_the_rows(self, closed, later):
        def archive(rows):
            raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            prune(ended_before=later, archive=archive, using="default")

        assert ScheduledTask.objects.count() == 2
        assert LogEntry.objects.count() == 2


class TestPruneOfARedrivenRun:
    def test_leaves_it_while_it_is_open_again(self, emit_at, run_at, order, now, later):
        emit_at("order.placed", order, now)
        rows = list(ScheduledTask.objects.in_order())
        for row in rows:
            run_at(row, now + timedelta(days=2))
        assert TimelineRun.objects.get().is_finished
        redrive(task_ids=[rows[0].pk], reason=Reason.operator("again"), now=now, using="default")

        assert prune(ended_before=now + timedelta(days=9), using="default") == (0, 0, 0)
