"""RunnerThreads: what several threads of one worker run, together and each once."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connections
from django.utils import timezone

from tests.databases import VENDOR
from tests.testapp.models import Effect, Order
from timeline import Timeline, task
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines
from timeline.worker import Worker
from timeline.worker.threads import RunnerThreads

pytestmark = pytest.mark.django_db(transaction=True)

DEADLINE = 120  # Seconds.


class Jobs(Timeline):
    """Meets others, or leaves a trace."""

    entity = "testapp.Order"
    meeting = threading.Barrier(2)

    @task(atomic=False)
    def meet(self, order: Order) -> None:
        Jobs.meeting.wait(DEADLINE)

    @task()
    def count(self, order: Order) -> None:
        Effect.objects.create(name=order.note)


@pytest.fixture(autouse=True)
def _jobs(settings):
    settings.TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=50)}
    with only_timelines(Jobs):
        yield


def just_now():
    return timezone.now() - timedelta(seconds=1)


def work_until_done(worker):
    """Let it work until nothing is open, or the deadline."""

    def watch():
        try:
            for _ in range(DEADLINE * 20):
                if not ScheduledTask.objects.open().exists():
                    break
                threading.Event().wait(0.05)
        finally:
            worker.stop()
            connections.close_all()

    watcher = threading.Thread(target=watch)
    watcher.start()
    worker.work()
    watcher.join()


class TestAWorkerWithThreads:
    def test_runs_handlers_at_the_same_time(self, order):
        """Each waits for the other: one after the other, none would end well."""
        for _ in range(2):
            schedule("jobs.meet", order, at=just_now())
        worker = Worker("default", "w", threads=2)

        work_until_done(worker)

        assert (
            list(ScheduledTask.objects.values_list("state", "worker", "attempt")) == [("completed", worker.name, 1)] * 2
        )
        assert worker.ran == 2

    def test_runs_each_task_once(self, db):
        orders = Order.objects.bulk_create(Order(note=str(number)) for number in range(60))
        for each in orders:
            schedule("jobs.count", each, at=just_now())
        worker = Worker("default", threads=4 if VENDOR == "postgresql" else 2)

        work_until_done(worker)

        assert Counter(Effect.objects.values_list("name", flat=True)) == Counter(each.note for each in orders)
        assert worker.ran == 60

    def test_ends_with_its_threads(self, order):
        schedule("jobs.count", order, at=just_now())
        before = set(threading.enumerate())  # Hints of other tests' commits, say.

        work_until_done(Worker("default", threads=3))

        started = set(threading.enumerate()) - before
        assert not [
            thread
            for thread in started
            if thread.name.startswith("timeline-") and thread.name not in ("timeline-hints", "timeline-supervisor")
        ]

    def test_has_one_at_least(self):
        with pytest.raises(CommandError, match="Give 1 or more"):
            call_command("timeline_worker", threads=0)


def never():
    raise AssertionError


class TestHands:
    def test_that_die_stop_the_worker_and_are_heard_of(self):
        """Else it would go on polling, with nobody left to run anything."""
        stopped = threading.Event()

        def run():
            raise LookupError("a mistake of ours")

        hands = RunnerThreads(2, run, using="default", stopping=lambda: False, stop=stopped.set)
        hands.__enter__()
        hands.call()

        assert stopped.wait(DEADLINE)
        with pytest.raises(LookupError, match="a mistake of ours"):
            hands.__exit__(None, None, None)

    def test_go_on_when_the_database_fails_once(self, caplog):
        done = threading.Event()
        failures = [OperationalError("the server has gone away")]

        def run():
            if failures:
                raise failures.pop()
            done.set()
            return 0

        with RunnerThreads(1, run, using="default", stopping=lambda: False, stop=never) as hands:
            hands.call()

            assert done.wait(DEADLINE)
        assert "the server has gone away" in caplog.text

    def test_take_on_nothing_once_told_to_stop(self):
        ran = []

        with RunnerThreads(2, lambda: ran.append(1) or 0, using="default", stopping=lambda: True, stop=never) as hands:
            hands.call()

        assert ran == []

    def test_do_nothing_until_they_are_called(self):
        ran = []

        with RunnerThreads(2, lambda: ran.append(1) or 0, using="default", stopping=lambda: False, stop=never):
            pass

        assert ran == []
