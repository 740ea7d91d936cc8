"""Two beats, two pollers and two Celery workers on one database, over each broker: each effect once; and none lost."""

from __future__ import annotations

import signal
from collections import Counter
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from tests.processes import DEADLINE, kill, start_process, wait_for
from timeline.conf import Settings
from timeline.models import LogEntry, ScheduledTask
from timeline.operations.schedule import schedule

pytestmark = pytest.mark.django_db(transaction=True)

TASKS = 1000
LEASE = 3


@pytest.fixture
def start(tmp_path, broker):
    """Start ``celery`` or ``manage`` with the broker; those still alive at the end are killed."""
    started = []

    def run(name, *command, lease=60, **more):
        environment = {
            "TEST_BROKER_URL": broker.url,
            "TEST_QUEUE_PREFIX": broker.prefix,
            "TEST_LEASE": str(lease),
            **more,
        }
        started.append(start_process(tmp_path, name, *command, **environment))
        return started[-1]

    yield run
    for process in started:
        kill(process)


@pytest.fixture
def celery(start, broker, tmp_path):
    """Start Celery's processes by name: ``celery.worker("a")``."""

    class Celery:
        def worker(self, name, queue=".default", **options):
            command = ["worker", "-Q", f"{broker.prefix}{queue}", "-n", f"{name}@{broker.prefix}"]
            return start(name, "celery", "-A", "project", *command, "-c", "2", "--without-gossip", **options)

        def poll_worker(self, name):
            return self.worker(name, "-poll")

        def beat(self, name):
            return start(name, "celery", "-A", "project", "beat", "--pidfile", str(tmp_path / f"{name}.pid"))

    return Celery()


@pytest.fixture
def due(order, request):
    """So many tasks that are due, by id."""
    now = timezone.now()
    at = now - timedelta(seconds=1)
    given = {"payload": {}, "cause": None, "using": "default"}
    return {
        str(schedule(task_key="crash_case.note", entity=order, at=at, key=str(number), now=now, **given).task.pk)
        for number in range(getattr(request, "param", TASKS))
    }


def schedule_now(task_key, entity):
    """Have a task due now."""
    now = timezone.now()
    given = {"key": "", "payload": {}, "cause": None, "using": "default"}
    return schedule(task_key=task_key, entity=entity, at=now, now=now, **given).task


def all_done():
    return not ScheduledTask.objects.open().exists()


def entered(tmp_path):
    """How often each handler was entered, as counted outside the database."""
    return Counter(line.split()[0] for line in (tmp_path / "notes").read_text().splitlines())


class TestTwoOfEverything:
    def test_enters_each_handler_once(self, due, broker, celery, settings, tmp_path):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=200), "QUEUE_PREFIX": broker.prefix}
        call_command("timeline_install_beat", verbosity=0)
        for number in "12":
            celery.worker(f"worker{number}")
            celery.poll_worker(f"poller{number}")
            celery.beat(f"beat{number}")

        wait_for(all_done, "the end of all tasks")

        assert entered(tmp_path) == dict.fromkeys(due, 1)
        assert set(ScheduledTask.objects.values_list("state", "attempt", "lost")) == {("completed", 1, 0)}
        # On a machine that is busy, a message may be sent again before a worker reads it.
        claims = LogEntry.objects.filter(to_state="pending").exclude(from_state="pending")
        claimed = Counter(claims.values_list("task", flat=True))
        assert set(claimed.values()) == {1}

    def test_loses_nothing_when_workers_are_killed_and_the_broker_is_wiped(self, due, broker, celery, start, tmp_path):
        """What was in the dead workers' hands is run again and told so; what was in the broker is sent again."""
        for number in "12":
            start(f"poller{number}", "manage", "timeline_poll", lease=LEASE)
        victims = [celery.worker("victim1", lease=LEASE), celery.worker("victim2", lease=LEASE)]
        wait_for(lambda: (tmp_path / "notes").exists() and len(entered(tmp_path)) > 100, "the first hundred")
        for victim in victims:
            kill(victim)
        assert not all_done()
        broker.wipe()
        celery.worker("heir1", lease=LEASE)
        celery.worker("heir2", lease=LEASE)

        wait_for(all_done, "the end of all tasks")

        times = entered(tmp_path)
        assert set(times) == due
        twice = {task_id for task_id, count in times.items() if count > 1}
        lost = set(ScheduledTask.objects.filter(attempt__gt=1).values_list("pk", flat=True))
        assert twice <= {str(task_id) for task_id in lost}
        lines = (tmp_path / "notes").read_text().splitlines()
        assert all(f"{task_id} True" in lines for task_id in twice)
        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"completed"}
        ends = LogEntry.objects.filter(to_state="completed").values_list("task", flat=True)
        assert len(ends) == len(set(ends)) == TASKS


@pytest.mark.parametrize("broker", ["redis"], indirect=True)
class TestKilledCeleryWorker:
    def test_has_its_task_run_again_when_it_has_been_silent_for_as_long_as_by_default(
        self, order, celery, start, tmp_path
    ):
        """With nothing helped along: its lease is far from over."""
        task = schedule_now("crash_case.plain_write", order)
        by_default = {"lease": 3600, "TEST_SILENCE": str(Settings().SILENCE.total_seconds())}
        start("poller", "manage", "timeline_poll", **by_default)
        victim = celery.worker("victim", **by_default)
        wait_for((tmp_path / "entered").exists, "entering the handler")
        celery.worker("heir", **by_default)

        kill(victim)
        wait_for(lambda: task.log.filter(to_state="active").count() == 2, "its second attempt")

        (tmp_path / "go").touch()
        wait_for(all_done, "its end")
        task.refresh_from_db()
        assert (task.state, task.attempt, task.result) == ("completed", 2, {"lost": True})


@pytest.mark.parametrize("due", [300], indirect=True)
class TestStoppedCeleryWorker:
    def test_gives_back_what_it_has_not_started(self, due, broker, celery, start, tmp_path):
        """
        Told to stop within a message, it ends its handler; the rest runs elsewhere, and no lease is waited for.

        What it had started without entering the handler it releases: that runs at its second attempt.
        """
        start("poller", "manage", "timeline_poll")
        first = celery.worker("first")
        wait_for((tmp_path / "notes").exists, "the first effect")
        first.send_signal(signal.SIGTERM)
        assert first.wait(DEADLINE) == 0
        assert not ScheduledTask.objects.filter(state="active").exists()
        celery.worker("second")

        wait_for(all_done, "the end of all tasks")

        assert entered(tmp_path) == dict.fromkeys(due, 1)
        assert set(ScheduledTask.objects.values_list("failures", "lost")) == {(0, 0)}
        again = LogEntry.objects.filter(from_state="active").exclude(to_state="completed")
        assert set(again.values_list("reason_code", flat=True)) <= {"released"}
        # Of each of the two processes of its pool the group at hand, and the one begun ahead.
        assert again.values("at").distinct().count() <= 4
