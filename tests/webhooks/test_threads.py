"""The thread that posts, over more than one claim: what it remembers of endpoints, and what holds up others."""

from __future__ import annotations

import socket
import threading
from datetime import UTC, datetime, timedelta

import pytest

from tests.processes import DEADLINE
from tests.webhooks.test_sending import told_order
from timeline.webhooks.delivery_rows import claim
from timeline.webhooks.disabling import disable, enable
from timeline.webhooks.models import Delivery, Disabled, Endpoint, State
from timeline.webhooks.send import OLD, Poster, WebhookSender


def send(sender, poster):
    """Let it look at the database some times, and wait for what comes of that."""
    for _turn in range(20):
        sender._next_look = 0.0
        sender.turn(poster)


@pytest.fixture
def failed_often(endpoint_for, receiver):
    """A sender at work whose endpoint has failed five times and more, and its thread."""
    endpoint_for("told")
    receiver.answer = lambda _request: 500
    for _order in range(6):
        told_order("told.asked")
    sender = WebhookSender("default")
    with Poster() as poster:
        send(sender, poster)
        assert Endpoint.objects.get().is_paused
        receiver.reset()
        yield sender, poster


class TestAnEndpointThatHasFailed:
    def test_is_sent_to_by_the_same_process_once_it_was_enabled_again(self, failed_often, receiver, clock):
        sender, poster = failed_often
        endpoint = Endpoint.objects.get()
        disable(endpoint, Disabled.OPERATOR, now=clock.now, using="default")
        enable(endpoint, now=clock.now, using="default")

        told_order("told.asked")
        send(sender, poster)

        assert len(receiver.requests) == 1
        assert Delivery.objects.filter(state=State.DELIVERED).count() == 1

    def test_is_sent_to_by_the_same_process_once_another_has_reached_it(self, failed_often, receiver, clock):
        sender, poster = failed_often
        clock.advance(minutes=10)
        WebhookSender("default").drain()
        reached = len(receiver.requests)

        told_order("told.asked")
        send(sender, poster)

        assert not Endpoint.objects.get().failures
        assert len(receiver.requests) == reached + 1


class TestANameThatIsNotAnswered:
    def test_holds_up_no_other_receiver(self, endpoint_for, receiver, settings, monkeypatch):
        """However many deliveries there are to it: the servers of that name belong to whoever made the endpoint."""
        settings.TIMELINE_WEBHOOKS |= {"TIMEOUT": timedelta(seconds=3)}
        is_over, asked = threading.Event(), []
        really = socket.getaddrinfo

        def look_up(host, *args, **options):
            asked.append(host)
            if host == "localhost" and not is_over.wait(DEADLINE):
                raise AssertionError(host)
            return really("127.0.0.1", *args, **options)

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        slow, quick = endpoint_for("told", ordered="no"), endpoint_for("told", path="/quick", ordered="no")
        there = receiver.url.replace("127.0.0.1", "localhost")
        Endpoint.objects.filter(pk=slow.pk).update(url=there)
        for _order in range(40):
            told_order("told.asked")

        try:
            WebhookSender("default").drain()
        finally:
            is_over.set()

        assert {request.path for request in receiver.requests} == {"/quick"}
        delivered = Delivery.objects.filter(state=State.DELIVERED).values_list("endpoint", flat=True)
        assert list(delivered) == [quick.pk] * 40
        assert asked.count("localhost") < 10


class TestAReceiverThatMayTakeLong:
    def test_keeps_what_was_claimed_for_it_from_others_for_as_long(self, endpoint_for, clock, settings):
        """Else another process sends it again, and what is behind it, while it is under way."""
        settings.TIMELINE_WEBHOOKS |= {"TIMEOUT": timedelta(minutes=2)}
        endpoint_for("told")
        told_order("told.asked")

        claim(lambda _endpoint: 1, now=clock.now, using="default")

        [until] = Delivery.objects.values_list("leased_until", flat=True)
        assert until > datetime.now(UTC) + timedelta(seconds=OLD) + timedelta(minutes=2)
