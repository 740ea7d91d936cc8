"""Prune: delete what has long ended, whole runs at a time."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from timeline import STAY, Machine, Timeline, after, task
from timeline.exceptions import NaiveDatetime
from timeline.features.maintenance.prune import Pruned, prune
from timeline.lifecycle import OPEN, Reason, State
from timeline.models import Event, Hold, LogEntry, RunEntry, ScheduledTask, TimelineRun
from timeline.operations.reconcile import reconcile
from timeline.operations.redrive import redrive
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

        assert prune(ended_before=later, using="default") == Pruned()

    def test_leaves_what_ended_then_or_later(self, closed, now):
        assert prune(ended_before=now, using="default") == Pruned()
        assert ScheduledTask.objects.count() == 2

    def test_takes_nothing_of_an_open_run(self, emit_at, run_at, order, now, later):
        """Or reconcile would make finished work again."""
        emit_at("order.placed", order, now)
        run_at(ScheduledTask.objects.get(task_key="delivery.pack"), later)

        assert prune(ended_before=later + timedelta(days=365), using="default") == Pruned()
        reconcile(entity=order, now=later, using="default")
        assert ScheduledTask.objects.filter(task_key="delivery.pack").count() == 1

    def test_leaves_an_ended_run_with_a_task_that_still_runs(self, closed, later, make_task):
        make_task(run=closed, state=State.ACTIVE)

        assert prune(ended_before=later, using="default") == Pruned()

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

        assert prune(ended_before=later, using="default") == Pruned()

    def test_takes_all_revisions_together(self, make_task, later):
        first = make_task(state=State.DISCARDED)
        make_task(state=State.COMPLETED, occurrence=first.occurrence, revision=2, previous=first)

        assert prune(ended_before=later, limit=1, using="default").tasks == 2

    @pytest.mark.parametrize("state", [State.SCHEDULED, State.COMPLETED])
    def test_leaves_all_while_one_is_open_or_young(self, make_task, later, state):
        first = make_task(state=State.DISCARDED)
        ends = {"finished_at": later} if state == State.COMPLETED else {}
        make_task(state=state, occurrence=first.occurrence, revision=2, previous=first, **ends)

        assert prune(ended_before=later, using="default") == Pruned()

    def test_tells_entities_apart(self, make_task, later):
        make_task(state=State.COMPLETED, occurrence="k", entity_label="testapp.order", entity_id="1")
        other = make_task(occurrence="k", entity_label="testapp.order", entity_id="2")

        assert prune(ended_before=later, using="default").tasks == 1
        assert ScheduledTask.objects.get() == other


class TestHolds:
    @pytest.fixture
    def over(self, now):
        """A hold that was made at a time and has ended an hour later."""

        def made(at, **columns):
            ended = at + timedelta(hours=1)
            given = {"scope": "everything", "reason": "x", "created_at": at, "lifted_at": ended, "released_at": ended}
            return Hold.objects.create(**{**given, **columns})

        return made

    def test_go_that_were_over_before(self, over, now, later):
        over(now)
        young, still = over(later), over(now + timedelta(days=1), lifted_at=None, released_at=None)
        kept = []

        pruned = prune(ended_before=later, archive=kept.append, using="default")

        assert pruned == Pruned(holds=1)
        assert set(Hold.objects.all()) == {young, still}
        assert [row["model"] for row in kept[0]] == ["timeline.hold"]

    def test_stay_where_an_open_one_may_have_time_in_common_with_them(self, over, now, later):
        """It is asked for when that one is released: what both have in common counts once."""
        over(now - timedelta(days=1))
        beside = over(now)
        still = over(now + timedelta(minutes=30), lifted_at=None, released_at=None)

        assert prune(ended_before=later, using="default") == Pruned(holds=1)
        assert set(Hold.objects.all()) == {beside, still}

    def test_go_in_batches_those_first_that_were_over_first(self, over, now, later):
        second, first = over(now + timedelta(hours=2)), over(now)

        assert prune(ended_before=later, limit=1, using="default") == Pruned(holds=1)
        assert Hold.objects.get() == second != first


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

        assert prune(ended_before=now + timedelta(days=9), using="default") == Pruned()


class Door(Machine):
    entity = "testapp.Order"
    starts_on = "door.made"
    initial = "open"
    table = {"open": {"door.shut": "shut", "door.knocked": STAY}, "shut": {}}


class OnceOnly(Door):
    once = True


class TestMachines:
    def made(self, machine, emit_at, order, now):
        with only_timelines(machine):
            for event in ("door.made", "door.knocked", "door.shut"):
                emit_at(event, order, now)

    def test_go_with_their_entries(self, emit_at, order, now, later):
        rows = []
        self.made(Door, emit_at, order, now)

        pruned = prune(ended_before=later, archive=rows.extend, using="default")

        assert (pruned.runs, TimelineRun.objects.count(), RunEntry.objects.count()) == (1, 0, 0)
        assert [row["model"] for row in rows].count("timeline.runentry") == 3

    def test_that_begin_once_keep_their_entries_with_their_run(self, emit_at, order, now, later):
        self.made(OnceOnly, emit_at, order, now)

        prune(ended_before=later, using="default")

        assert (TimelineRun.objects.get().state, RunEntry.objects.count()) == ("shut", 3)

    def test_cost_a_host_without_them_nothing(self, closed, later):
        with CaptureQueriesContext(connection) as queries:
            prune(ended_before=later, using="default")

        assert not any("timeline_runentry" in query["sql"] for query in queries)
