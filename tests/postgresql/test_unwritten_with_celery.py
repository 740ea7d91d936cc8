"""Outcomes that cannot be written, in Celery's processes: they outlive their message, and are told when the worker stops."""

from __future__ import annotations

import signal
import time
from collections import Counter
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from tests.processes import DEADLINE, kill, start_process, wait_for
from tests.testapp.models import Order
from tests.testapp.timelines import CrashCase
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule, start

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.parametrize("broker", ["redis"], indirect=True),
]

LEASE = 8  # Seconds. Beats come each third of it, also on a machine that is busy.


@pytest.fixture
def letter(db):
    """A task that is due, in a run of an order of its own."""
    order = Order.objects.create(ships_at=timezone.now() - timedelta(seconds=1))
    start(CrashCase, order)
    return ScheduledTask.objects.get(entity_id=str(order.pk))


@pytest.fixture
def pool():
    """How Celery's worker runs messages: one at a time."""
    return "prefork"


@pytest.fixture
def worker(tmp_path, broker, pool):
    """Celery's, with one process or thread in its pool, and a poller."""
    environment = {"TEST_BROKER_URL": broker.url, "TEST_QUEUE_PREFIX": broker.prefix, "TEST_LEASE": str(LEASE)}
    queue = ["-P", pool, "-Q", f"{broker.prefix}.default", "-n", f"one@{broker.prefix}"]
    celery = start_process(
        tmp_path, "worker", "celery", "-A", "project", "worker", *queue, "-c", "1", "--without-gossip", **environment
    )
    poller = start_process(tmp_path, "poller", "manage", "timeline_poll", **environment)
    yield celery
    kill(celery)
    kill(poller)


def entries(tmp_path):
    """How often each handler was entered."""
    notes = tmp_path / "notes"
    return Counter(line.split()[0] for line in notes.read_text().splitlines()) if notes.exists() else {}


class TestAnEntityThatSomebodyHolds:
    def test_holds_up_no_message_behind_it_and_no_mail_is_sent_again(self, letter, tmp_path, worker, at_once):
        def due(number):
            return schedule("crash_case.note", Order.objects.create(), at=timezone.now(), key=str(number)).task.pk

        with transaction.atomic():
            list(Order.objects.filter(pk=letter.entity_id).select_for_update())
            wait_for(lambda: entries(tmp_path), "the letter")
            [others] = at_once(lambda: [due(number) for number in range(20)])
            done = ScheduledTask.objects.filter(pk__in=others, state="completed")
            wait_for(lambda: done.count() == len(others), "what came after it")
            letter.refresh_from_db()
            time.sleep(LEASE + 1)
            letter.refresh_from_db()
            assert (letter.state, letter.attempt) == ("active", 1)

        wait_for(lambda: ScheduledTask.objects.get(pk=letter.pk).state == "completed", "the outcome")
        assert entries(tmp_path) == {str(task_id): 1 for task_id in (letter.pk, *others)}


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
class TestAWorkerThatIsToldToStop:
    def test_says_what_it_leaves(self, letter, tmp_path, worker):
        log = tmp_path / "worker.log"

        with transaction.atomic():
            list(Order.objects.filter(pk=letter.entity_id).select_for_update())
            wait_for(lambda: "is kept until" in log.read_text(), "that the outcome is kept")
            worker.send_signal(signal.SIGTERM)
            worker.wait(DEADLINE)

        assert f"Their tasks will run again: {letter.pk}" in log.read_text()
