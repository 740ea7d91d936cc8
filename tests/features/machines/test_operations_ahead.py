"""Many moves whose rows are planned while they are written: compared with moves that are written in turn, column by column."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from tests.features.machines.test_operations_at_once import all_of
from tests.machines import is_whole
from tests.testapp.models import Order
from timeline import STAY, Machine, Retry, Timeline, after, at, never, on, task
from timeline.exceptions import MoveNotAllowed
from timeline.features.machines.edges import see_edges
from timeline.models import Edge, Event, ScheduledTask, TimelineRun
from timeline.operations.sets import PORTION
from timeline.shortcuts import emit, emit_many, start_many
from timeline.signals import runs_entered
from timeline.testing import only_timelines

pytestmark = [pytest.mark.django_db, pytest.mark.only_postgresql]

MANY = PORTION + 3


class Ring(Machine):
    """States have rows, or none; one backs off."""

    entity = "testapp.Order"
    initial = "new"
    working = ("new",)
    table = {
        "new": {"ask": "asked", "fail": "failed", "rest": "calm", "end": "over"},
        "asked": {"answer": "new", "ask": STAY, "late": "over"},
        "failed": {"again": "new", "spent": "over"},
        "calm": {"rest": STAY, "end": "over"},
        "over": {},
    }
    timers = {
        "late": on("asked", days=30),
        "again": after("failed", backoff=Retry(base=timedelta(seconds=30), max_attempts=4, jitter=0), spent="spent"),
        "calm": never,
    }

    @task(on("new"), priority=3)
    def look(self, order): ...

    @task(after(days=3))
    def remind(self, order): ...


class Dated(Ring):
    """Follows a field."""

    name = "dated"

    @task(at("ships_at"))
    def ship(self, order): ...


class Follows(Timeline):
    """Starts by an event that moves, too."""

    entity = "testapp.Order"
    starts_on = "ask"

    @task(after(days=1))
    def look(self, order): ...


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Ring):
        see_edges(using="default")
        yield


def orders(count=MANY, machine=Ring):
    made = Order.objects.bulk_create([Order(ships_at="2027-01-01T00:00Z") for _ in range(count)])
    start_many(machine, made)
    return made


def moved(events, *, in_turn=False, key="", machine=Ring, count=MANY):
    """Many orders that go through these events: the rows of the first and the last, and whether these were read ahead."""
    some = orders(count, machine)
    if in_turn:
        runs_entered.connect(_hear)
    try:
        with CaptureQueriesContext(connection) as queries:
            for name in events:
                assert emit_many(name, some, key=key, actor="ada").moved == count
    finally:
        runs_entered.disconnect(_hear)
    runs = TimelineRun.objects.filter(timeline=machine.definition.name, entity_id__in=[some[0].pk, some[-1].pk])
    assert all(map(is_whole, runs))
    return [all_of(order) for order in (some[0], some[-1])], are_read_ahead(queries)


def are_read_ahead(queries):
    """Whether rows of tasks were locked before the first event was written."""
    for query in queries:
        if 'INSERT INTO "timeline_event"' in query["sql"]:
            return False
        if "FROM timeline_scheduledtask" in query["sql"] and "FOR NO KEY UPDATE" in query["sql"]:
            return True
    return False


def _hear(**_said):
    """Somebody of the host's, who may write."""


class TestAhead:
    @pytest.mark.parametrize(
        "events",
        [["ask"], ["ask", "ask", "answer"], ["fail", "again"], ["rest"], ["ask", "answer", "fail"]],
        ids=" ".join,
    )
    def test_writes_what_is_written_in_turn(self, events):
        ahead, is_ahead = moved(events)
        in_turn, is_ahead_in_turn = moved(events, in_turn=True)

        assert ahead == in_turn
        assert is_ahead
        assert not is_ahead_in_turn

    def test_moves_only_those_whose_event_is_new(self):
        some = orders()
        emit_many("ask", some[:2], key="k")
        rows = all_of(some[0])

        done = emit_many("ask", some, key="k")

        assert (done.recorded, done.again, done.moved) == (MANY - 2, 2, MANY - 2)
        assert all_of(some[0]) == rows
        assert set(TimelineRun.objects.values_list("state", "moves")) == {("asked", 1)}
        assert ScheduledTask.objects.filter(task_key__contains="late", finished_at=None).count() == MANY

    def test_moves_none_whose_event_turns_out_not_to_be_new(self):
        some, was_written = orders(), []

        def meanwhile(execute, sql, params, many, context):
            if 'INSERT INTO "timeline_event"' in sql and not was_written:
                was_written.append(True)
                about = {"entity_label": "testapp.order", "entity_id": str(some[7].pk), "name": "ask", "key": "k"}
                at = some[7].ships_at
                Event.objects.create(**about, payload={}, occurred_at=at, recorded_at=at)
            return execute(sql, params, many, context)

        with connection.execute_wrapper(meanwhile):
            done = emit_many("ask", some, key="k")

        assert (done.recorded, done.moved) == (MANY - 1, MANY - 1)
        assert TimelineRun.objects.get(moves=0).entity_id == str(some[7].pk)

    def test_writes_nothing_where_no_event_is_new(self):
        some = orders()
        emit_many("ask", some, key="k")

        assert (done := emit_many("ask", some, key="k")).moved == 0
        assert done.again == MANY

    def test_starts_what_the_event_starts(self):
        with only_timelines(Ring, Follows):
            ahead, is_ahead = moved(["ask"])
            in_turn, _is_ahead = moved(["ask"], in_turn=True)

        assert ahead == in_turn
        assert len(ahead[0][1]) == 2
        assert is_ahead

    def test_refuses_all_where_a_run_has_moved_meanwhile(self):
        some, was_moved = orders(), []

        def meanwhile(execute, sql, params, many, context):
            if "timeline_move_runs" in sql and not was_moved:
                was_moved.append(True)
                run = TimelineRun.objects.get(entity_id=str(some[7].pk))
                columns = {"state": "calm", "state_at": run.state_at, "moves": run.moves + 1}
                TimelineRun.objects.filter(pk=run.pk).update(**columns)
            return execute(sql, params, many, context)

        with connection.execute_wrapper(meanwhile), pytest.raises(MoveNotAllowed, match=f"testapp.order {some[7].pk}"):
            emit_many("ask", some)

        assert was_moved
        assert not Event.objects.exists()
        assert not TimelineRun.objects.filter(moves__gt=0).exists()

    @pytest.mark.django_db(transaction=True)
    def test_tells_the_database_of_moves_anew_that_it_has_refused(self):
        some = orders()
        emit("ask", some[0])
        Edge.objects.all().delete()

        with pytest.raises(IntegrityError, match="no such move"):
            emit_many("ask", some[1:])
        assert TimelineRun.objects.filter(moves__gt=0).count() == 1

        assert emit_many("ask", some[1:]).moved == MANY - 1


class TestAreMany:
    """Others are written in turn."""

    def test_are_no_few(self):
        assert not moved(["ask"], count=PORTION)[1]

    def test_come_to_no_end(self):
        assert not moved(["end"])[1]

    def test_follow_no_field(self):
        with only_timelines(Dated):
            see_edges(using="default")

            assert not moved(["ask"], machine=Dated)[1]
