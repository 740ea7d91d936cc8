"""The loop of a worker: when it sleeps, what wakes it, and how it stops."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest
from django.db import OperationalError, connections
from django.utils import timezone

from tests.databases import VENDOR
from tests.processes import DEADLINE, wait_for
from tests.worker.jobs import Jobs, effects, just_now
from tests.worker.test_runner_threads import work_until_done
from timeline.clocks import story_now
from timeline.lifecycle import State
from timeline.models import Identity
from timeline.shortcuts import schedule
from timeline.testing import only_timelines
from timeline.worker import Worker
from timeline.worker.loop import AGAIN, Loop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _jobs():
    with only_timelines(Jobs):
        yield


class TestPause:
    def test_is_until_the_next_due_row(self, order, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(hours=1)}
        now = story_now("default")
        schedule("jobs.first", order, at=now + timedelta(minutes=10))

        pause = Worker("default").pause(now)

        assert timedelta(0) < pause <= timedelta(minutes=10)

    def test_is_none_when_a_row_has_come_due_since_the_poll(self, order):
        now = story_now("default")
        schedule("jobs.first", order, at=now + timedelta(milliseconds=50))
        time.sleep(0.1)

        pause = Worker("default").pause(now)

        assert pause == timedelta(0)

    def test_is_one_poll_interval_at_most(self, order, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(seconds=7)}
        now = story_now("default")
        schedule("jobs.first", order, at=now + timedelta(days=1))

        pause = Worker("default").pause(now)

        assert pause == timedelta(seconds=7)

    def test_is_one_poll_interval_when_there_is_nothing(self, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(seconds=7)}

        assert Worker("default").pause(story_now("default")) == timedelta(seconds=7)


class TestWork:
    def test_runs_until_told_to_stop(self, order, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=20)}
        schedule("jobs.first", order, at=just_now())
        schedule("jobs.urgent", order, at=timezone.now() + timedelta(milliseconds=100))
        worker = Worker("default")

        work_until_done(worker)

        assert (worker.ran, sorted(effects())) == (2, ["first", "urgent"])

    def test_goes_on_when_the_database_fails_once(self, order, settings, caplog, monkeypatch):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=20)}
        schedule("jobs.first", order, at=just_now())

        class Shaken(Worker):
            failed = False

            def poll(self) -> int:
                if not self.failed:
                    self.failed = True
                    raise OperationalError("the server has gone away")
                return super().poll()

        worker = Shaken("default")

        work_until_done(worker)

        assert effects() == ["first"]
        assert "the server has gone away" in caplog.text


class Counting(Loop):
    """Counts its steps, and would sleep for ten minutes after each."""

    steps = 0
    last = 0.0  # When the last one began.

    def turn(self) -> timedelta:
        self.last = time.monotonic()
        self.steps += 1
        return timedelta(minutes=10)

    def is_at_rest(self):
        """Whether it sleeps for longer than until it looks once more."""
        before = self.steps
        time.sleep(0.5)
        return self.steps == before


@pytest.fixture
def at_work():
    """Let loops work in threads until the end of the test."""
    loops = {}

    def work(loop):
        try:
            loop.work()
        finally:
            connections.close_all()

    def start(loop):
        loops[loop] = threading.Thread(target=work, args=[loop])
        loops[loop].start()
        return loop

    yield start
    for loop, thread in loops.items():
        loop.stop()
        thread.join(DEADLINE)
        assert not thread.is_alive()


class TestWakingUp:
    @pytest.fixture(autouse=True)
    def _hours(self, settings):
        """Whoever waits for the next poll waits until the test has failed."""
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(hours=1)}

    def test_lets_what_is_due_now_run_at_once(self, order, at_work):
        worker = at_work(Worker("default"))
        wait_for(lambda: Identity.objects.filter(polled_at__isnull=False).exists(), "the first poll")

        schedule("jobs.first", order, at=just_now())

        wait_for(lambda: worker.ran, "the task")

    def test_keeps_it_from_oversleeping_what_is_due_soon(self, order, at_work):
        worker = at_work(Worker("default"))
        wait_for(lambda: Identity.objects.filter(polled_at__isnull=False).exists(), "the first poll")

        schedule("jobs.first", order, at=timezone.now() + timedelta(seconds=1))

        wait_for(lambda: worker.ran, "the task")

    def test_is_followed_by_one_more_look(self, at_work):
        """For what was left out because it came right after what was announced. Then it sleeps."""
        loop = at_work(Counting("default"))
        begun = 1 if VENDOR == "sqlite" else 2  # On PostgreSQL it is woken when it begins to listen.
        wait_for(lambda: loop.steps >= begun and loop.is_at_rest(), "the first steps")
        before, rung = loop.steps, time.monotonic()

        loop._alarm.ring()
        # Where it has taken its time to wake up, that look is late enough.
        wait_for(lambda: loop.last >= rung + AGAIN, "one more look")
        wait_for(loop.is_at_rest, "its sleep")

        assert loop.steps <= before + 2

    def test_does_not_hurry_on_one_whose_database_failed(self, at_work):
        class Failing(Counting):
            def turn(self) -> timedelta:
                super().turn()
                raise OperationalError("the server has gone away")

        loop = at_work(Failing("default"))
        wait_for(lambda: loop.steps, "the first step")

        for _ in range(20):
            loop._alarm.ring()
            time.sleep(0.01)

        assert loop.steps == 1


class TestNotWakingUp:
    def test_costs_no_more_than_a_poll_interval(self, order, make_task, settings, at_work):
        """A row that nobody announced is run all the same."""
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=50)}
        worker = at_work(Worker("default"))
        wait_for(lambda: Identity.objects.filter(polled_at__isnull=False).exists(), "the first poll")

        make_task(task_key="jobs.first", state=State.AVAILABLE, entity_label="testapp.order", entity_id=str(order.pk))

        wait_for(lambda: worker.ran, "the task")
