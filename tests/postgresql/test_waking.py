"""A worker process that sleeps for an hour: woken by others, stopped at once, and nothing left behind."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from tests.processes import DEADLINE, kill, start_process, wait_for
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule
from timeline.signals import CHANNEL

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

NAME = "timeline-sleeper"


@pytest.fixture
def sleeper(tmp_path):
    """A worker that polls once an hour, and listens by now."""
    command = ("manage", "timeline_worker", "--name", "sleeper")
    process = start_process(tmp_path, "sleeper", *command, PGAPPNAME=NAME, TEST_POLL_INTERVAL="3600")
    wait_for(lambda: f"LISTEN {CHANNEL}" in connections_of_it() and len(connections_of_it()) == 2, "the listening")
    yield process
    kill(process)


def connections_of_it():
    """What each of its connections did last."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT query FROM pg_stat_activity WHERE application_name = %s", [NAME])
        return [query for [query] in cursor.fetchall()]


def all_done():
    return not ScheduledTask.objects.open().exists()


class TestSleeper:
    def test_runs_at_once_what_another_process_makes_due(self, sleeper, order):
        schedule("crash_case.note", order, at=timezone.now())

        wait_for(all_done, "the task")

    def test_does_not_oversleep_what_another_process_makes_due_soon(self, sleeper, order):
        schedule("crash_case.note", order, at=timezone.now() + timedelta(seconds=1))

        wait_for(all_done, "the task")

    def test_stops_at_once_and_leaves_no_connection(self, sleeper):
        sleeper.send_signal(signal.SIGTERM)

        assert sleeper.wait(DEADLINE) == 0
        wait_for(lambda: connections_of_it() == [], "the end of its connections")
