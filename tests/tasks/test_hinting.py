"""Hints: from a thread of their own, and never in anybody's way."""

from __future__ import annotations

import threading
import time

from tests.brokers import free_port, received
from tests.processes import DEADLINE, wait_for
from timeline.exceptions import BrokerUnavailable
from timeline.tasks import broker as tasks_broker
from timeline.tasks.broker import Hinter, has_broker, poll_queue, send_poll


class TestHinter:
    def test_sends_a_poll(self, over, broker):
        hinter = Hinter(over(broker.url, broker.prefix))

        hinter.work_due(using="default")

        polls = []
        wait_for(lambda: polls.extend(received(broker, poll_queue())) or polls, "the hint")
        assert [headers["task"] for headers, _properties, _body in polls] == ["timeline.poll"]

    def test_lets_what_is_due_at_about_the_same_time_share_one(self, over, broker):
        over(broker.url, broker.prefix)
        sender = Hanging()
        hinter = Hinter(sender)
        hinter.work_due(using="default")
        wait_for(lambda: sender.asked, "the first hint")

        for _ in range(500):
            hinter.work_due(using="default")
        sender.has_answer.set()

        wait_for(lambda: sender.asked == 2, "the hint that they share")
        time.sleep(0.3)
        assert sender.asked == 2

    def test_asks_celery_once_in_a_while_whether_there_is_a_broker(self, monkeypatch):
        asked = []
        monkeypatch.setattr(tasks_broker, "has_broker", lambda: asked.append("asked"))
        monkeypatch.setattr(tasks_broker, "GAP", 60)
        hinter = Hinter(Hanging())

        for _ in range(100):
            hinter.work_due(using="default")

        assert asked == ["asked"]

    def test_sends_no_second_poll_while_the_first_waits(self, over, broker):
        """Where nobody takes them, they do not pile up."""
        sender = over(broker.url, broker.prefix)

        for _ in range(3):
            send_poll(sender, "default")
        assert len(received(broker, poll_queue())) == 1
        send_poll(sender, "default")

        assert len(received(broker, poll_queue())) == 1

    def test_keeps_no_one_waiting_for_a_broker_that_does_not_answer(self, over):
        over("redis://127.0.0.1:1/0")
        sender = Hanging()
        hinter = Hinter(sender)

        for _ in range(100):
            hinter.work_due(using="default")

        assert not sender.has_answer.is_set()
        sender.has_answer.set()
        wait_for(lambda: sender.asked, "the hint")

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
        monkeypatch.setattr(tasks_broker, "SILENCE", 0.1)
        sender = Counting(over(f"redis://127.0.0.1:{free_port()}/0"))
        hinter = Hinter(sender)
        hinter.work_due(using="default")
        wait_for(lambda: sender.tried == 1 and hinter._silent_until, "the first failure")

        time.sleep(0.2)
        hinter.work_due(using="default")

        wait_for(lambda: sender.tried == 2, "another try")


class Hanging:
    """Takes a hint, and does not come back before it is told to."""

    def __init__(self):
        self.asked = 0
        self.has_answer = threading.Event()

    def publish(self, *_args, **_kwargs):
        self.asked += 1
        assert self.has_answer.wait(DEADLINE)


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
