"""A move in one trip writes what is written in several: compared with that, column by column."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.machines import is_whole
from tests.testapp.models import Order
from timeline import STAY, Machine, Retry, Timeline, after, at, never, on, task
from timeline.models import Event, LogEntry, RunEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, start
from timeline.signals import runs_entered
from timeline.testing import only_timelines

pytestmark = [pytest.mark.django_db, pytest.mark.only_postgresql]


class Call(Machine):
    """Every state has rows; one is by a field, and one backs off."""

    entity = "testapp.Order"
    initial = "new"
    working = ("new",)
    table = {
        "new": {"ask": "asked", "fail": "failed", "plan": "planned", "end": "over"},
        "asked": {"answer": "new", "ask": STAY, "late": "over"},
        "planned": {"reached": "new"},
        "failed": {"again": "new", "spent": "over"},
        "over": {},
    }
    timers = {
        "late": on("asked", days=30),
        "reached": at("ships_at"),
        "planned": never,  # ships_at may be empty.
        "again": after("failed", backoff=Retry(base=timedelta(seconds=30), max_attempts=4, jitter=0), spent="spent"),
    }

    @task(on("new"), priority=3)
    def look(self, order): ...

    @task(after(days=3))
    def remind(self, order): ...


class Bare(Machine):
    """No state has rows; the run has one all the same."""

    entity = "testapp.Order"
    initial = "off"
    table = {"off": {"switch": "on"}, "on": {"switch": "off", "again": STAY, "gone": "away"}, "away": {}}

    @task(after(days=3))
    def remind(self, order): ...


class Follows(Timeline):
    """Starts by an event that moves, too."""

    entity = "testapp.Order"
    starts_on = "ask"

    @task(after(days=1))
    def look(self, order): ...


class Ends(Follows):
    """Is ended by one."""

    starts_on = "begun"
    exits = {"ask": "asked"}


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Call):
        yield


OWN = {"id", "entity_id", "run_id", "task_id", "cause_id", "started_by_id", "previous_id"}


def all_of(order):
    """Each row about an order: values of all columns that are not made anew for each."""
    about = {"entity_id": str(order.pk)}
    found = [
        Event.objects.filter(**about),
        TimelineRun.objects.filter(**about),
        RunEntry.objects.filter(run__entity_id=str(order.pk)),
        ScheduledTask.objects.filter(**about),
        LogEntry.objects.filter(task__entity_id=str(order.pk)),
    ]
    return [
        sorted(
            str(
                {
                    field.attname: getattr(row, field.attname)
                    for field in row._meta.concrete_fields
                    if field.attname not in OWN
                }
            )
            for row in rows
        )
        for rows in found
    ]


def moved(events, *, in_several, key="", machine=Call):
    """An order that goes through these events, and the statements that it took."""
    order = Order.objects.create(ships_at="2027-01-01T00:00Z")
    start(machine, order)
    if in_several:
        runs_entered.connect(_hear)
    try:
        with CaptureQueriesContext(connection) as queries:
            for name in events:
                emit(name, order, key=key, actor="ada", payload={"a": ["ä", None]})
    finally:
        runs_entered.disconnect(_hear)
    assert is_whole(TimelineRun.objects.get(timeline=machine.definition.name, entity_id=str(order.pk)))
    return all_of(order), " ".join(query["sql"] for query in queries)


def _hear(**_said):
    """Somebody of the host's, who may write."""


class TestMove:
    @pytest.mark.parametrize(
        "events",
        [["ask"], ["ask", "ask", "answer"], ["ask", "answer", "ask"], ["plan"], ["plan", "reached"], ["fail", "again"]],
        ids=" ".join,
    )
    @pytest.mark.parametrize("key", ["", "k"])
    def test_writes_what_is_written_in_several_trips(self, events, key):
        if key:
            events = list(dict.fromkeys(events))
        at_once, said = moved(events, in_several=False, key=key)
        apart, said_apart = moved(events, in_several=True, key=key)

        assert at_once == apart
        assert "timeline_move_at_once" in said
        assert "timeline_move_at_once" not in said_apart

    @pytest.mark.parametrize("event", ["end", "fail"])
    def test_takes_several_where_a_run_ends_or_tries_are_counted(self, event):
        at_once, said = moved([event], in_several=False)

        assert at_once == moved([event], in_several=True)[0]
        assert "timeline_move_at_once" not in said

    @pytest.mark.parametrize("events", [["switch"], ["switch", "again", "switch"]], ids=" ".join)
    def test_writes_what_is_written_in_several_trips_where_no_row_follows(self, events):
        with only_timelines(Bare):
            at_once, said = moved(events, in_several=False, machine=Bare)
            apart, said_apart = moved(events, in_several=True, machine=Bare)

        assert at_once == apart
        assert said.count("timeline_move_at_once") == said.count("timeline_to_move") == len(events)
        assert "timeline_move_at_once" not in said_apart

    def test_into_an_end_takes_several_where_no_row_follows(self):
        with only_timelines(Bare):
            at_once, said = moved(["switch", "gone"], in_several=False, machine=Bare)
            apart, _said = moved(["switch", "gone"], in_several=True, machine=Bare)

        assert at_once == apart
        assert said.count("timeline_move_at_once") == 1

    def test_starts_what_the_event_starts(self):
        with only_timelines(Call, Follows):
            at_once, said = moved(["ask"], in_several=False)
            apart, _said = moved(["ask"], in_several=True)

        assert at_once == apart
        assert len(at_once[1]) == 2
        assert "timeline_move_at_once" in said

    def test_takes_several_where_the_event_ends_other_runs(self):
        with only_timelines(Call, Ends):
            _rows, said = moved(["ask"], in_several=False)

        assert "timeline_move_at_once" not in said

    def test_that_was_recorded_before_does_nothing(self):
        rows, _said = moved(["ask"], in_several=False, key="k")
        order = Order.objects.get()

        assert not emit("ask", order, key="k", actor="ada", payload={"a": ["ä", None]}).recorded
        assert all_of(order) == rows
