"""How many tasks of each kind are open, overdue, failed or cancelled, and how many runs there are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import translation

from tests.testapp.models import Order
from timeline import Machine, Timeline, after, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.reading.tallies import MAX_COUNTED, Amount, TaskTally, tallies
from timeline.shortcuts import emit, start
from timeline.testing import StoryClock, only_timelines


class Care(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.returned": "returned"}

    @task(after(days=3))
    def greet(self, order): ...

    @task(after(greet, days=7))
    def follow_up(self, order): ...


class Door(Machine):
    entity = "testapp.Order"
    initial = "shut"
    table = {"shut": {"door.opened": "open"}, "open": {"door.shut": "shut", "door.torn": "gone"}, "gone": {}}
    starts_on = "door.made"


@pytest.fixture(autouse=True)
def clock(db, now):
    with only_timelines(Care, Door), StoryClock(now) as clock:
        yield clock


def told(definition=Care.definition, tasks=None, *, now, reasons=True, runs=True):
    tasks = ScheduledTask.objects.all() if tasks is None else tasks
    return tallies([definition], tasks, reasons=reasons, runs=runs, now=now)


class TestTasks:
    def test_are_open_in_each_state_that_is_no_end(self, make_task, now):
        for state in State:
            make_task(task_key="care.greet", state=state, scheduled_at=now + timedelta(days=1))

        assert told(now=now).tasks["care.greet"].open == Amount(5)

    def test_are_overdue_while_nobody_starts_them(self, make_task, now):
        for state in State:
            make_task(task_key="care.greet", state=state, scheduled_at=now - timedelta(hours=1))
        make_task(task_key="care.greet", scheduled_at=now)

        tally = told(now=now).tasks["care.greet"]

        assert (tally.open, tally.overdue) == (Amount(6), Amount(4))

    def test_have_failed_lately_by_when_they_did(self, make_task, now):
        for days in (0, 6, 8):
            failed = {"reason_code": "error", "finished_at": now - timedelta(days=days)}
            make_task(task_key="care.greet", state=State.DISCARDED, scheduled_at=now - timedelta(days=30), **failed)

        assert told(now=now).tasks["care.greet"].failed == Amount(2)

    def test_were_cancelled_for_reasons_that_are_told_apart(self, make_task, now):
        for code in ("exit", "exit", "guard"):
            make_task(task_key="care.greet", state=State.CANCELLED, reason_code=code)

        assert told(now=now).tasks["care.greet"].cancelled == {"exit": Amount(2), "guard": Amount(1)}
        assert told(now=now, reasons=False).tasks["care.greet"].cancelled == {}

    def test_are_those_that_one_may_see(self, make_task, now):
        seen = make_task(task_key="care.greet")
        make_task(task_key="care.greet")

        assert told(tasks=ScheduledTask.objects.filter(pk=seen.pk), now=now).tasks["care.greet"].open == Amount(1)
        assert told(tasks=ScheduledTask.objects.none(), now=now, runs=False).tasks["care.greet"] == TaskTally()

    def test_are_summed_up_over_a_timeline(self, make_task, now):
        for key in ("care.greet", "care.greet", "care.follow_up", "other.greet"):
            make_task(task_key=key, scheduled_at=now + timedelta(days=1))

        assert told(now=now).of(Care.definition) == TaskTally(open=Amount(3))

    def test_are_counted_up_to_a_limit(self, make_task, now, monkeypatch):
        monkeypatch.setattr("timeline.reading.tallies.MAX_COUNTED", 2)
        for _ in range(3):
            make_task(task_key="care.greet")
        make_task(task_key="care.follow_up")

        assert told(now=now).of(Care.definition).open == Amount(3, is_more=True)

    def test_take_one_statement_for_any_number_of_rows_and_timelines(self, make_task, now):
        for _ in range(20):
            make_task(task_key="care.greet")

        with CaptureQueriesContext(connection) as queries:
            tallies([Care.definition, Door.definition], ScheduledTask.objects.all(), reasons=True, runs=True, now=now)

        assert len(queries) == 1


class TestRuns:
    def test_are_open_or_began_or_ended_lately(self, clock):
        old = [Order.objects.create() for _ in range(3)]
        for order in old:
            start("care", order)
        clock.set(clock.now + timedelta(days=30))
        start("care", Order.objects.create())
        new = Order.objects.create()
        emit("order.placed", new)
        emit("order.returned", new)
        emit("order.returned", old[0])

        runs = told(now=clock.now).runs["care"]

        assert (runs.open, runs.started, runs.ended) == (Amount(3), Amount(2), Amount(2))

    def test_of_a_machine_are_told_by_their_state(self, clock):
        for number in range(3):
            order = Order.objects.create()
            emit("door.made", order)
            if number:
                emit("door.opened", order)

        assert told(Door.definition, now=clock.now).states == {
            "shut": Amount(1),
            "open": Amount(2),
            "gone": Amount(),
        }

    def test_are_left_out_where_they_are_not_asked_for(self, clock):
        counted = told(Door.definition, now=clock.now, runs=False)

        assert (counted.runs, counted.states) == ({}, {})


class TestAmount:
    def test_is_written_as_people_read_it(self):
        assert str(Amount(MAX_COUNTED, is_more=True)) == "1,000+"
        with translation.override("de"):
            assert str(Amount(1234)) == "1.234"
