"""A receiver of the host that is told of an ending before its commit, and writes about the same entity."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, after_run, at, task
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import emit, leave
from timeline.signals import tasks_ending
from timeline.testing import only_timelines

HOURS = timedelta(hours=1)
DAYS = timedelta(days=1)


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.closed": "closed"}

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(ship, days=2))
    def ask(self, order): ...


class Alone(Timeline):
    """Has one task: its run is finished with it."""

    entity = "testapp.Order"
    starts_on = "order.called"
    exits = {"order.closed": "closed"}

    @task(after(days=1))
    def call(self, order): ...


class Thanks(Timeline):
    entity = "testapp.Order"
    starts_on = after_run(Alone, ended="any")

    @task(after(days=1))
    def thank(self, order): ...


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Delivery, Alone, Thanks):
        yield


@pytest.fixture
def order(clock):
    return Order.objects.create(ships_at=clock.now + DAYS)


@pytest.fixture
def answer():
    """Let a receiver of the host do something, once, when tasks end; before the commit."""

    def connect(deed):
        def receive(**_signal):
            tasks_ending.disconnect(dispatch_uid="tests.answer")
            deed()

        tasks_ending.connect(receive, weak=False, dispatch_uid="tests.answer")
        # Another receiver of the host stays.
        tasks_ending.connect(_listen, dispatch_uid="tests.listen")

    yield connect
    tasks_ending.disconnect(dispatch_uid="tests.answer")
    tasks_ending.disconnect(dispatch_uid="tests.listen")


def _listen(**_signal): ...


def still_open():
    """What is open: tasks, and runs."""
    tasks = ScheduledTask.objects.open().values_list("task_key", flat=True)
    return [*tasks, *TimelineRun.objects.open().values_list("timeline", flat=True)]


class TestDeletingTheEntity:
    @pytest.mark.parametrize("event", ["order.placed", "order.called"])
    def test_leaves_nothing_open_where_a_task_has_completed(self, clock, order, answer, event):
        emit(event, order)
        answer(Order.objects.all().delete)

        clock.run_until(clock.now + DAYS + HOURS)

        assert ScheduledTask.objects.filter(state="completed").count() == 1
        assert (still_open(), TimelineRun.objects.get().end_code) == ([], "entity_gone")

    @pytest.mark.parametrize("end", ["exit", "left"])
    def test_begins_nothing_after_a_run_that_was_ended(self, order, answer, end):
        emit("order.called", order)
        answer(Order.objects.all().delete)

        if end == "exit":
            emit("order.closed", order)
        else:
            leave(Alone, order, reason="enough")

        assert (still_open(), Order.objects.count()) == ([], 0)


class TestEndingTheRun:
    def test_leaves_no_follow_up_open(self, clock, order, answer):
        emit("order.placed", order)
        answer(lambda: emit("order.closed", order))

        clock.run_until(clock.now + DAYS + HOURS)

        assert (still_open(), TimelineRun.objects.get().end_code) == ([], "exit")


class TestDoingNothing:
    def test_has_the_follow_up_and_the_next_run(self, clock, order, answer):
        """The counter-story."""
        emit("order.placed", order)
        emit("order.called", order)
        answer(lambda: None)

        clock.run_until(clock.now + DAYS + HOURS)

        assert sorted(still_open()) == ["delivery", "delivery.ask", "thanks", "thanks.thank"]
