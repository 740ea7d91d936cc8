"""Restarts under load: a worker that is told to stop finishes what it has entered and gives back the rest; nothing is lost."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest
from django.utils import timezone

from tests.processes import DEADLINE, kill, start_process, wait_for
from tests.testapp.models import Order
from timeline.models import LogEntry, ScheduledTask
from timeline.shortcuts import schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql, pytest.mark.processes]

RESTARTS = 100
WORKERS = 3
BETWEEN = 0.15  # Seconds from one SIGTERM to the next.
AT_ONCE = 25  # Tasks that become due with each.


@pytest.fixture
def kept(tmp_path):
    """Workers that are restarted as they end."""
    process = start_process(tmp_path, "restarting", "tests.faults.restarting", str(WORKERS))
    yield process
    kill(process)


def notes(tmp_path):
    return Counter((tmp_path / "notes").read_text().split())


def pids(tmp_path):
    """Which workers are there."""
    with suppress(FileNotFoundError):
        return [int(pid) for pid in (tmp_path / "workers").read_text().split()]
    return []


class TestAHundredRestartsUnderLoad:
    def test_lose_no_attempt_and_enter_each_handler_once(self, kept, tmp_path):
        told, now = [], timezone.now()
        orders = Order.objects.bulk_create(Order() for _ in range(RESTARTS * AT_ONCE))
        give_up = time.monotonic() + 5 * DEADLINE
        while len(told) < RESTARTS:
            assert time.monotonic() < give_up
            for order in orders[len(told) * AT_ONCE : (len(told) + 1) * AT_ONCE]:
                schedule("crash_case.brief_plain", order, at=now)
            wait_for(lambda: pids(tmp_path), "a worker")
            pid = pids(tmp_path)[len(told) % len(pids(tmp_path))]
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
                told.append(pid)
            time.sleep(BETWEEN)

        wait_for(lambda: not ScheduledTask.objects.open().exists(), "the end of all", within=5 * DEADLINE)
        kept.send_signal(signal.SIGTERM)
        assert kept.wait(DEADLINE) == 0

        rows = ScheduledTask.objects.values_list("state", "failures", "lost")
        assert Counter(rows) == {("completed", 0, 0): RESTARTS * AT_ONCE}
        assert not LogEntry.objects.filter(reason_code="worker_lost").exists()
        assert set(notes(tmp_path).values()) == {1}
        assert len(notes(tmp_path)) == RESTARTS * AT_ONCE
        ends = [
            line.split()[-1] for line in (tmp_path / "restarting.log").read_text().splitlines() if "ended with" in line
        ]
        assert len(ends) > RESTARTS / 2  # One that is told twice, or before it listens, is one.
        # Cleanly, but for those that were told before they could listen.
        assert set(ends) <= {"0", str(int(signal.SIGTERM))}
