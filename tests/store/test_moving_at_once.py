"""All of a move in one statement: what is written, what is guarded, and what the function is made of."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from tests.machines import Booking, S, is_whole, placed
from tests.testapp.models import Trip
from tests.trips import Travel, shown
from timeline.exceptions import MoveNotAllowed
from timeline.features.machines.edges import see_edges
from timeline.features.machines.one_trip import LATER, fits, function_text, move_at_once
from timeline.features.machines.sentences import STATE_LEFT
from timeline.features.machines.store import Going, NewState
from timeline.lifecycle import State, Trigger
from timeline.models import Event, LogEntry, RunEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit
from timeline.store.insert import fields_of
from timeline.store.transition import Write
from timeline.testing import only_timelines

pytestmark = [pytest.mark.django_db, pytest.mark.only_postgresql]

CANCEL = (Trigger.CANCEL,)


@pytest.fixture(autouse=True)
def _machine():
    with only_timelines(Booking):
        see_edges(using="default")
        yield


@pytest.fixture
def run(order):
    return placed(order, S.CREATED)


@pytest.fixture
def tasks_of(run, make_task):
    def made(**columns):
        about = {"run": run, "entity_label": run.entity_label, "entity_id": run.entity_id, "task_key": "booking.look"}
        return make_task(**about, **columns)

    return made


def event_of(run, now, **columns):
    about = {"entity_label": run.entity_label, "entity_id": run.entity_id}
    said = {"name": "validated", "key": "", "payload": {"says": '"50 %"'}, "actor": "ada", "occurred_at": now}
    return {"id": uuid4(), **about, **said, "recorded_at": now, **columns}


def going(run, now, target=S.VALIDATING, cause=None):
    steps = [NewState(run, str(target), "CREATED", cause)]
    return Going(steps, event="validated", actor="ada", now=now, using="default")


def new_row(run, now, **columns):
    about = {"entity_label": run.entity_label, "entity_id": run.entity_id, "run": run, "task_key": "booking.look"}
    times = {"nominal_at": now, "scheduled_at": now, "created_at": now}
    return ScheduledTask(**about, **times, occurrence="1", state=State.AVAILABLE, max_attempts=3, **columns)


def write(task):
    return Write(task=task, triggers=CANCEL, reason=STATE_LEFT(states="CREATED"))


class TestMoveAtOnce:
    def test_writes_all_of_it_in_one_statement(self, run, tasks_of, now, django_assert_num_queries):
        left, event = tasks_of(occurrence="0"), event_of(run, now)
        new = new_row(run, now, payload={"a b": [None, "☃ %s"]})

        with django_assert_num_queries(1):
            done = move_at_once(
                going(run, now, cause=event["id"]), event, [write(left)], [new], now=now, using="default"
            )

        assert (done.recorded, done.met, done.runs) == ({event["id"]}, set(), [run])
        assert {name: getattr(Event.objects.get(), name) for name in event} == event
        assert is_whole(run)
        entry = RunEntry.objects.get(seq=1)
        assert (entry.event, entry.actor, entry.cause_id, entry.back) == ("validated", "ada", event["id"], "CREATED")
        stored = ScheduledTask.objects.get(pk=left.pk)
        assert (stored.state, stored.finished_at, left.state, left.finished_at) == ("cancelled", now, "cancelled", now)
        logged = LogEntry.objects.get()
        assert (logged.from_state, logged.to_state, logged.reason_code) == ("scheduled", "cancelled", "state")
        assert logged.detail["said"]
        made = ScheduledTask.objects.get(pk=new.pk)
        assert all(getattr(made, name) == getattr(new, name) for name in fields_of(ScheduledTask))
        assert (new._state.adding, new._state.db) == (False, "default")

    def test_writes_nothing_of_an_event_that_is_there(self, run, tasks_of, now):
        Event.objects.create(**event_of(run, now, key="k"))
        left = tasks_of()

        done = move_at_once(going(run, now), event_of(run, now, key="k"), [write(left)], [], now=now, using="default")

        assert (done.recorded, done.runs) == (set(), [])
        assert (TimelineRun.objects.get().moves, ScheduledTask.objects.get().state) == (0, State.SCHEDULED)

    def test_refuses_a_run_that_has_moved_meanwhile_and_changes_no_row(self, run, tasks_of, now):
        left, stale = tasks_of(), TimelineRun.objects.get()
        move_at_once(going(run, now), event_of(run, now), [], [], now=now, using="default")

        with pytest.raises(MoveNotAllowed), transaction.atomic():
            move_at_once(going(stale, now), event_of(run, now), [write(left)], [], now=now, using="default")

        assert (TimelineRun.objects.get().moves, ScheduledTask.objects.get().state) == (1, State.SCHEDULED)
        assert Event.objects.count() == 1

    def test_is_refused_by_the_database_what_its_table_does_not_have(self, run, now):
        with pytest.raises(IntegrityError, match="no such move"), transaction.atomic():
            move_at_once(going(run, now, S.BOOKED), event_of(run, now), [], [], now=now, using="default")

    def test_leaves_a_row_that_was_changed_since_it_was_read(self, run, tasks_of, now):
        left = tasks_of()
        ScheduledTask.objects.update(attempt=1)

        move_at_once(going(run, now), event_of(run, now), [write(left)], [], now=now, using="default")

        assert left.state == ScheduledTask.objects.get().state == State.SCHEDULED
        assert not LogEntry.objects.exists()

    def test_leaves_out_a_new_row_whose_place_is_taken(self, run, tasks_of, now):
        there = tasks_of(occurrence="1")
        new = new_row(run, now)

        move_at_once(going(run, now), event_of(run, now), [], [new], now=now, using="default")

        assert ScheduledTask.objects.get() == there
        assert new._state.adding

    def test_says_that_somebody_waits_for_the_event(self, run, tasks_of, now):
        awaited = {"awaits": "validated", "awaits_label": run.entity_label, "awaits_id": run.entity_id}
        tasks_of(scheduled_at=now + timedelta(days=1), **awaited)
        event = event_of(run, now)

        assert move_at_once(going(run, now), event, [], [], now=now, using="default").met == {event["id"]}


class TestMirror:
    @pytest.fixture
    def trip(self):
        with only_timelines(Travel):
            see_edges(using="default")
            trip = Trip.objects.create()
            emit("trip.booked", trip)
            yield trip

    def leaving(self, run, now, **columns):
        event = event_of(run, now, name="trip.left", **columns)
        steps = [NewState(run, "UNDER_WAY", "PLANNED", event["id"])]
        said = Going(steps, event="trip.left", actor="ada", now=now, using="default")
        return move_at_once(said, event, [], [], now=now, using="default")

    def test_is_written_in_the_same_statement(self, trip, now, django_assert_num_queries):
        run = TimelineRun.objects.get()

        with django_assert_num_queries(1):
            done = self.leaving(run, now)

        assert len(done.runs) == 1
        assert shown(trip) == TimelineRun.objects.get().state == "UNDER_WAY"

    def test_is_not_written_for_an_event_that_is_there(self, trip, now):
        run = TimelineRun.objects.get()
        Event.objects.create(**event_of(run, now, name="trip.left", key="k"))

        assert self.leaving(run, now, key="k").recorded == set()

        assert shown(trip) == TimelineRun.objects.get().state == "PLANNED"


class TestFits:
    def test_takes_plain_cancels_alone(self, tasks_of):
        task = tasks_of()

        assert fits([])
        assert fits([write(task)])
        assert not fits([write(task), Write(task=task, scheduled_at=task.scheduled_at)])
        task.slot = 1
        assert not fits([write(task)])

    @pytest.mark.parametrize("name", LATER)
    def test_takes_rows_alone_of_which_nothing_has_become(self, name, run, now):
        """The function writes the default of each of these columns, whatever a row has."""
        new = new_row(run, now)
        assert fits([], [new])

        setattr(new, name, 7)

        assert not fits([], [new])


class TestFunctionText:
    def test_has_each_column_of_what_is_inserted_and_the_rules_of_a_cancel(self):
        text = function_text("default")

        for model in (Event, ScheduledTask):
            assert all(text.count(f'"{name}"') >= 3 for name in fields_of(model) if name not in LATER)
        assert "seq = task.seq + 1" in text
        assert "{" not in text.replace("'{}'", "")
        assert "timeline_move_runs" not in text
        assert "timeline_is_awaited" not in text
        assert "%" not in text

    def test_is_what_stands(self):
        with connection.cursor() as cursor:
            cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = 'timeline_move_at_once'")
            [[source]] = cursor.fetchall()

        assert source in function_text("default")
