"""What somebody sees of tasks that fail who has set up no logging: real processes, and what they print."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.processes import kill, start_process, wait_for
from tests.testapp.models import Order
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def start(tmp_path):
    """Start processes; those still alive at the end are killed."""
    started = []

    def run(name, *command, **environment):
        started.append(start_process(tmp_path, name, *command, TEST_LOGGING="none", **environment))

    yield run
    for process in started:
        kill(process)


@pytest.fixture
def failing():
    """Two tasks that are due: one fails once, one fails for good. Secrets of theirs are in their payloads."""
    order, at = Order.objects.create(), timezone.now() - timedelta(seconds=1)
    keys = ["fail_case.once", "fail_case.for_good"]
    return [schedule(key, order, at=at, payload={"note": "hunter2"}).task for key in keys]


def seen(log, once, for_good):
    """Both failures are told, with ids; the last one with its traceback; and nothing of what is private."""
    assert re.search(rf"fail_case\.once of testapp\.order \d+ failed at attempt 1.*ConnectionError: .*{once.pk}", log)
    assert re.search(rf"fail_case\.for_good of testapp\.order \d+ is discarded after attempt 1.*{for_good.pk}", log)
    assert log.count("Traceback (most recent call last)") == 1
    assert "ValueError: no such address" in log
    assert "hunter2" not in log
    return True


def all_ended():
    return not ScheduledTask.objects.open().exists()


class TestEmbeddedWorker:
    def test_prints_what_failed(self, start, failing, tmp_path):
        start("worker", "manage", "timeline_worker")

        wait_for(all_ended, "the end of both")

        wait_for(lambda: "is discarded" in (tmp_path / "worker.log").read_text(), "a word of it")
        assert seen((tmp_path / "worker.log").read_text(), *failing)


@pytest.mark.only_postgresql
class TestCeleryWorker:
    def test_prints_what_failed(self, start, failing, tmp_path, broker):
        environment = {"TEST_BROKER_URL": broker.url, "TEST_QUEUE_PREFIX": broker.prefix}
        start("poller", "manage", "timeline_poll", **environment)
        names = ["-Q", f"{broker.prefix}.default", "-n", f"worker@{broker.prefix}"]
        start("celery", "celery", "-A", "project", "worker", *names, "-c", "1", "--without-gossip", **environment)

        wait_for(all_ended, "the end of both")

        wait_for(lambda: "is discarded" in (tmp_path / "celery.log").read_text(), "a word of it")
        log = (tmp_path / "celery.log").read_text()
        assert seen(log, *failing)
        assert re.search(r"WARNING.*fail_case\.once", log)
        assert re.search(r"ERROR.*fail_case\.for_good", log)
