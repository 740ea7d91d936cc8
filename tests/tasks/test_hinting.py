"""Hints: after the commit, from a thread of their own, and never in anybody's way."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.brokers import free_port, received
from tests.processes import wait_for
from timeline import Timeline, after, task
from timeline.exceptions import BrokerUnavailable
from timeline.shortcuts import move, run_now, schedule, start
from timeline.signals import work_due
from timeline.tasks import hinting
from timeline.tasks.hinting import Hinter, has_broker
from timeline.tasks.sending import poll_queue
from timeline.testing import only_timelines


class Jobs(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def later(self, order) -> None: ...

    @task()
    def work(self, order) -> None: ...


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Jobs):
        yield


@pytest.fixture
def announced():
    """Aliases for which it was announced that something is due, each with whether a transaction was open then."""
    heard = []

    def hear(using, **_extra):
        heard.append((using, connection.in_atomic_block))

    work_due.connect(hear)
    yield heard
    work_due.disconnect(hear)


def ago(**span):
    return timezone.now() - timedelta(**span)


@pytest.mark.django_db(transaction=True)
class TestWorkDue:
    def test_is_announced_after_the_commit(self, announced, order):
        with transaction.atomic():
            schedule("jobs.work", order, at=ago(seconds=1))
            assert announced == []

        assert announced == [("default", False)]

    def test_is_not_announced_for_what_is_ahead(self, announced, order):
        schedule("jobs.work", order, at=ago(days=-1))
        start("jobs", order)

        assert announced == []

    def test_is_not_announced_when_the_transaction_fails(self, announced, order):
        with transaction.atomic():
            schedule("jobs.work", order, at=ago(seconds=1))
            transaction.set_rollback(True)

        assert announced == []

    @pytest.mark.parametrize(
        "hasten",
        [lambda row: run_now(row, reason="asked for"), lambda row: move(row, at=ago(hours=1), reason="asked for")],
    )
    def test_is_announced_when_somebody_makes_a_task_due(self, announced, order, hasten):
        row = schedule("jobs.work", order, at=ago(days=-1)).task

        hasten(row)

        assert announced == [("default", False)]

    def test_harms_nobody_when_a_listener_fails(self, order):
        def fail(**_extra):
            raise RuntimeError("a listener's own trouble")

        work_due.connect(fail)
        try:
            row = schedule("jobs.work", order, at=ago(seconds=1)).task
        finally:
            work_due.disconnect(fail)

        row.refresh_from_db()
        assert row.state == "available"


class TestHinter:
    def test_sends_a_poll(self, over, broker):
        hinter = Hinter(over(broker.url, broker.prefix))

        hinter.work_due(using="default")

        polls = []
        wait_for(lambda: polls.extend(received(broker, poll_queue())) or polls, "the hint")
        assert [headers["task"] for headers, _properties, _body in polls] == ["timeline.poll"]

    def test_lets_what_is_due_at_about_the_same_time_share_one(self, over, broker):
        hinter = Hinter(over(broker.url, broker.prefix))

        for _ in range(500):
            hinter.work_due(using="default")
        time.sleep(0.3)

        assert 1 <= len(received(broker, poll_queue())) <= 3

    def test_keeps_no_one_waiting_for_a_broker_that_does_not_answer(self, over, mute):
        hinter = Hinter(over(f"redis://127.0.0.1:{mute}/0"))
        begun = time.monotonic()

        for _ in range(100):
            hinter.work_due(using="default")

        assert time.monotonic() - begun < 1

    def test_is_silent_for_a_while_after_a_failure(self, over, caplog):
        sender = Counting(over(f"redis://127.0.0.1:{free_port()}/0"))
        hinter = Hinter(sender)
        hinter.work_due(using="default")
        wait_for(lambda: sender.tried == 1 and hinter._silent_until, "the first failure")

        for _ in range(20):
            hinter.work_due(using="default")
        time.sleep(0.2)

        assert sender.tried == 1
        assert "No hints for 30 s" in caplog.text

    def test_tries_again_after_the_silence(self, over, monkeypatch):
        monkeypatch.setattr(hinting, "SILENCE", 0.1)
        sender = Counting(over(f"redis://127.0.0.1:{free_port()}/0"))
        hinter = Hinter(sender)
        hinter.work_due(using="default")
        wait_for(lambda: sender.tried == 1 and hinter._silent_until, "the first failure")

        time.sleep(0.2)
        hinter.work_due(using="default")

        wait_for(lambda: sender.tried == 2, "another try")


class Counting:
    """Counts how often a sender is asked to send."""

    def __init__(self, sender):
        self.sender = sender
        self.tried = 0

    def publish(self, *args, **kwargs):
        self.tried += 1
        self.sender.publish(*args, **kwargs)


class TestHasBroker:
    def test_is_false_where_nobody_named_one(self, over):
        over("")

        assert not has_broker()

    def test_is_true_where_somebody_did(self, over):
        over("redis://127.0.0.1:1/0")

        assert has_broker()

    def test_is_false_where_tasks_run_eagerly(self, over, eager):
        over("redis://127.0.0.1:1/0")

        assert not has_broker()

    def test_without_one_nothing_is_sent(self, over):
        sender = Counting(over(""))

        Hinter(sender).work_due(using="default")

        assert sender.tried == 0


def test_broker_unavailable_says_what_happens_next():
    assert (
        str(BrokerUnavailable(OSError("gone"))) == "The broker takes no message (OSError: gone). A later poll sends it."
    )
