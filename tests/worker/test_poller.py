"""The poller: beat's poll in a process of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from tests.processes import DEADLINE, wait_for
from timeline import Timeline, task
from timeline.exceptions import BrokerUnavailable
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines
from timeline.worker import Poller

pytestmark = pytest.mark.django_db(transaction=True)


class Jobs(Timeline):
    entity = "testapp.Order"

    @task()
    def work(self, order) -> None: ...


class Post:
    """A broker in this process, down for its first polls."""

    def __init__(self, down=0):
        self.down = down
        self.polls = 0
        self.sent = []
        self.then = lambda: None

    def connect(self):
        self.polls += 1
        if self.polls <= self.down:
            raise BrokerUnavailable(ConnectionRefusedError())

    def send(self, batch, *, using):
        self.sent += batch.task_ids
        self.then()


@contextmanager
def stopped_at_last(poller) -> Iterator[None]:
    """Let it be stopped within the block if nothing else does that."""
    timer = threading.Timer(DEADLINE, poller.stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def work_and_close(poller):
    try:
        poller.work()
    finally:
        connections.close_all()


@pytest.fixture(autouse=True)
def _jobs():
    with only_timelines(Jobs):
        yield


class TestPoller:
    def test_sleeps_until_the_next_row_is_due(self, order, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(hours=1)}
        row = schedule("jobs.work", order, at=timezone.now() + timedelta(milliseconds=400)).task
        post = Post()
        poller = Poller("default", post)
        post.then = poller.stop

        with stopped_at_last(poller):
            poller.work()

        assert post.sent == [row.pk]
        assert poller.sent == 1

    def test_sleeps_one_poll_interval_at_most(self, order, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=100)}

        assert Poller("default", Post()).turn() == timedelta(milliseconds=100)

    def test_does_not_sleep_while_there_is_more_to_send(self, order, settings):
        """Its time for one poll is up after the first claim; what is left does not wait for another interval."""
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(microseconds=1), "MAX_PENDING": 2}
        for _ in range(3):
            schedule("jobs.work", order, at=timezone.now())
        post = Post()
        poller = Poller("default", post)

        assert poller.turn() == timedelta(0)
        assert len(post.sent) == 2

    def test_goes_on_after_the_broker_was_down(self, order, settings, caplog):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=50)}
        row = schedule("jobs.work", order, at=timezone.now()).task
        post = Post(down=2)
        poller = Poller("default", post)
        post.then = poller.stop

        with stopped_at_last(poller):
            poller.work()

        assert post.sent == [row.pk]
        assert caplog.text.count("The broker takes no message") == 2
        assert ScheduledTask.objects.get().state == "pending"

    def test_is_woken_by_what_is_due_now(self, order, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(hours=1)}
        post = Post()
        poller = Poller("default", post)
        thread = threading.Thread(target=work_and_close, args=[poller])
        thread.start()
        wait_for(lambda: post.polls, "the first poll")

        row = schedule("jobs.work", order, at=timezone.now()).task

        wait_for(lambda: post.sent == [row.pk], "the message")
        poller.stop()
        thread.join()

    def test_leaves_a_broker_that_is_down_alone_until_the_next_poll(self, order, settings, caplog):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(hours=1)}
        post = Post(down=1000)
        poller = Poller("default", post)
        thread = threading.Thread(target=work_and_close, args=[poller])
        thread.start()
        wait_for(lambda: post.polls, "the first poll")

        for _ in range(20):
            schedule("jobs.work", order, at=timezone.now())

        poller.stop()
        thread.join()
        assert (post.polls, post.sent) == (1, [])

    def test_stops_at_once_when_told_to(self, order, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(hours=1)}
        post = Post()
        poller = Poller("default", post)
        thread = threading.Thread(target=work_and_close, args=[poller])
        thread.start()
        wait_for(lambda: post.polls, "the first poll")

        poller.stop()

        thread.join(DEADLINE)
        assert not thread.is_alive()
