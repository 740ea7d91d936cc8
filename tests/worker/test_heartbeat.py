"""The heartbeat: keeps up the leases of what is being run, and of nothing else."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.db import transaction

from timeline.clocks import MachineTime
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.worker.heartbeat import Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def heartbeat(settings):
    settings.TIMELINE = {"LEASE": timedelta(milliseconds=300)}
    with Heartbeat("default", stopping=bool) as beat:
        yield beat


@pytest.fixture
def active(make_task):
    """A row that a worker holds, its lease about to run out."""
    task = make_task(state=State.ACTIVE, attempt=1)
    ScheduledTask.objects.update(lease_expires_at=MachineTime(timedelta(milliseconds=200)))
    return task


def is_given_up():
    return ScheduledTask.objects.given_up().exists()


class TestHeartbeat:
    def test_keeps_up_the_lease_of_what_it_holds(self, heartbeat, active):
        heartbeat.entered(active)

        time.sleep(0.7)

        assert not is_given_up()

    def test_lets_the_lease_of_what_was_dropped_run_out(self, heartbeat, active):
        heartbeat.entered(active)
        heartbeat.left(active)

        time.sleep(0.7)

        assert is_given_up()

    def test_leaves_another_attempt_alone(self, heartbeat, active):
        active.attempt = 7
        heartbeat.entered(active)

        time.sleep(0.7)

        assert is_given_up()

    def test_goes_on_after_a_beat_that_failed(self, heartbeat, active, caplog):
        """On SQLite a handler's transaction keeps the one writer; the next beat makes up for it."""
        heartbeat.entered(active)

        with transaction.atomic():
            ScheduledTask.objects.update(worker="busy")
            time.sleep(0.4)
        time.sleep(0.5)

        assert not is_given_up()
