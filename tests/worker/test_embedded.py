"""The embedded worker: what it runs, and what a turn of it costs."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from itertools import cycle

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.processes import wait_for
from tests.worker.jobs import Jobs, effects, just_now
from timeline import Timeline, after, hourly, task
from timeline.clocks import MachineTime, story_now, story_time
from timeline.conf import get_settings
from timeline.dispatch import poll
from timeline.dispatch.claim import claim
from timeline.lifecycle import State
from timeline.models import LogEntry, ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines
from timeline.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _jobs():
    with only_timelines(Jobs):
        yield


class TestPoll:
    def test_runs_what_is_due_by_priority(self, order):
        schedule("jobs.first", order, at=just_now())
        schedule("jobs.urgent", order, at=just_now())

        worker = Worker("default", "w")

        taken = worker.poll()

        assert taken == 2
        assert effects() == ["urgent", "first"]
        assert set(ScheduledTask.objects.values_list("state", "worker")) == {("completed", worker.name)}

    def test_begins_what_starts_by_the_clock(self):
        class Tidying(Timeline):
            starts_on = hourly()

            @task(after())
            def tidy(self):
                return None

        with only_timelines(Tidying):
            Worker("default").poll()

        assert ScheduledTask.objects.get().scheduled_at > timezone.now()

    def test_leaves_what_is_not_due(self, order):
        schedule("jobs.first", order, at=timezone.now() + timedelta(hours=1))

        taken = Worker("default").poll()

        assert (taken, effects()) == (0, [])
        assert ScheduledTask.objects.get().state == "scheduled"

    def test_leaves_keys_it_does_not_know(self, order, make_task):
        row = make_task(task_key="elsewhere.work", state=State.AVAILABLE)

        taken = Worker("default").poll()

        row.refresh_from_db()
        assert (taken, row.state, row.attempt) == (0, "available", 0)

    def test_enters_plain_handlers_outside_and_atomic_ones_inside_a_transaction(self, order):
        schedule("jobs.first", order, at=just_now())
        schedule("jobs.urgent", order, at=just_now())

        Worker("default").poll()

        assert ScheduledTask.objects.get(task_key="jobs.first").result is False
        assert ScheduledTask.objects.get(task_key="jobs.urgent").result is True

    def test_rescues_what_a_dead_worker_held(self, order):
        row = schedule("jobs.first", order, at=just_now()).task
        poll.stage(now=story_now("default"), using="default")
        ScheduledTask.objects.update(state="active", attempt=1, lease_expires_at=MachineTime(timedelta(seconds=-1)))

        Worker("default").poll()

        row.refresh_from_db()
        assert (row.state, row.attempt, row.lost) == ("completed", 2, 0)

    @pytest.mark.parametrize("threads", [1, 2])
    def test_runs_what_was_claimed_for_a_broker_whose_message_is_lost(self, order, threads):
        rows = [schedule("jobs.first", order, at=just_now(), key=str(number)).task for number in range(3)]
        poll.stage(now=story_now("default"), using="default")
        claim(limit=10, now=story_now("default"), using="default")
        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"pending"}
        ScheduledTask.objects.update(lease_expires_at=MachineTime(timedelta(seconds=-1)))
        worker = Worker("default", threads=threads)

        with worker._runner_threads or nullcontext():
            worker.poll()
            wait_for(lambda: not ScheduledTask.objects.exclude(state="completed").exists(), "their ends")

        assert set(ScheduledTask.objects.values_list("pk", "attempt")) == {(row.pk, 1) for row in rows}

    def test_leaves_lost_messages_of_keys_it_does_not_know_to_who_sends_them(self, order, make_task):
        """It sends nothing: who does would wait twice as long each time."""
        row = make_task(task_key="elsewhere.work", state=State.PENDING)
        run = schedule("jobs.first", order, at=just_now()).task
        poll.stage(now=story_now("default"), using="default")
        claim(limit=10, now=story_now("default"), using="default")
        waits = []
        for _poll in range(3):
            ScheduledTask.objects.filter(state="pending").update(
                lease_expires_at=MachineTime(timedelta(seconds=-1)), sent_at=MachineTime(timedelta(seconds=-1))
            )
            Worker("default").poll()
            row.refresh_from_db()
            waits.append(row.lease_expires_at - timezone.now())

        run.refresh_from_db()
        assert (run.state, row.state, row.attempt) == ("completed", "pending", 0)
        assert max(waits) <= get_settings().resend_after
        assert not LogEntry.objects.filter(task=row, detail__has_key="resend").exists()

    def test_enters_no_handler_once_told_to_stop(self, order):
        schedule("jobs.first", order, at=just_now())
        worker = Worker("default")

        worker.stop()
        worker.poll()

        assert effects() == []
        assert ScheduledTask.objects.get().state == "available"


class TestStep:
    def test_needs_few_statements_when_there_is_nothing(self, settings):
        """An idle worker makes one turn in a poll interval."""
        worker = Worker("default")
        worker.turn()  # Rescues too, which it does every ten seconds.
        worker._next_round = 0.0

        with CaptureQueriesContext(connection) as idle:
            worker.turn()
        with CaptureQueriesContext(connection) as woken:
            worker.turn()

        assert len(idle) <= 9
        assert len(woken) < len(idle)

    @pytest.mark.only_postgresql
    def test_asks_once_where_nothing_is_due_or_available(self):
        worker = Worker("default")
        worker.poll()

        with CaptureQueriesContext(connection) as idle:
            worker.poll()

        assert len(idle) == 1

    def test_finds_what_somebody_else_has_made_available(self, order):
        worker = Worker("default")
        worker.turn()
        schedule("jobs.first", order, at=just_now())
        poll.stage(now=story_now("default"), using="default")

        worker.turn()

        assert effects() == ["first"]

    def test_oversleeps_nothing_when_the_clock_is_set_back_meanwhile(self, order, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(hours=1)}
        now = story_now("default")
        schedule("jobs.first", order, at=now + timedelta(minutes=1))
        worker = Worker("default")
        worker._next_rescue = float("inf")
        times = cycle([now + timedelta(minutes=2), now])

        with story_time(lambda: next(times)):
            pause = worker.turn()

        assert worker.ran or pause <= timedelta(minutes=1)
