"""Two workers of Celery share a rate, and one of them is killed: in no second do more begin than are allowed, and all end."""

from __future__ import annotations

import json
import os
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.features.rates.paced.timelines import PacedCase
from tests.features.rates.test_store import most_within
from tests.processes import all_ended, kill, let_be_dead, start_process, wait_for
from tests.testapp.models import Order
from timeline.clocks import MachineTime
from timeline.models import RateKey, ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.only_postgresql,
    pytest.mark.parametrize("broker", ["redis"], indirect=True),
]

KINDS = ("call", "call_atomic")
OF_EACH = 14


@pytest.fixture(autouse=True)
def known():
    with only_timelines(PacedCase):
        yield


@pytest.fixture
def celery(tmp_path, broker):
    """A poller and two workers, each with two processes in its pool: name → process."""
    environment = {"TEST_BROKER_URL": broker.url, "TEST_QUEUE_PREFIX": broker.prefix}
    started = {"poller": start_process(tmp_path, "poller", "manage", "timeline_poll", **environment)}
    for name in ("one", "two"):
        options = ["-c", "2", "-Q", f"{broker.prefix}.default", "-n", f"{name}@{broker.prefix}", "--without-gossip"]
        started[name] = start_process(tmp_path, name, "celery", "-A", "project", "worker", *options, **environment)
    yield started
    for process in started.values():
        kill(process)


def entered(folder):
    path = folder / "entered"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def is_of(process, worker):
    """Whether a process of a pool was forked by this one."""
    try:
        return os.getpgid(int(worker.split(":")[1])) == process.pid
    except ProcessLookupError:
        return False


def give_up_what_the_dead_have(alive):
    """What they run; and messages, of which nobody knows who has taken them: those that wait in the queue are sent again."""
    for worker in set(ScheduledTask.objects.filter(state="active").values_list("worker", flat=True)):
        if not is_of(alive, worker):
            let_be_dead(worker=worker)
    ScheduledTask.objects.filter(state="pending").update(lease_expires_at=MachineTime(timedelta(seconds=-1)))


class TestTwoWorkersOfCelery:
    def test_keep_the_rate_and_do_all_although_one_is_killed(self, tmp_path, celery):
        at = timezone.now() - timedelta(minutes=1)
        for place in range(OF_EACH):
            for name in KINDS:
                schedule(f"paced_case.{name}", Order.objects.create(), at=at + timedelta(milliseconds=place))

        wait_for(lambda: len(entered(tmp_path)) > OF_EACH / 2, "some work")
        kill(celery["one"])
        give_up_what_the_dead_have(celery["two"])
        wait_for(all_ended, "the end of all")

        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"completed"}
        lines = entered(tmp_path)
        done = {name: len({line["order"] for line in lines if line["name"] == name}) for name in KINDS}
        assert done == dict.fromkeys(KINDS, OF_EACH)
        # An attempt is counted up to a group's 50 ms before its handler is entered: a window that much shorter is exact.
        assert most_within([line["at"] for line in lines], 0.7) <= 6
        assert most_within([line["at"] for line in lines], 2.0) > 6  # It can be seen if it is not kept.
        assert RateKey.objects.get().key == "outside"
