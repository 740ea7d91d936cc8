"""The way to the broker: what a message holds, and how soon a broker that is down is given up."""

from __future__ import annotations

import socket
import time
import uuid

import pytest

from tests.brokers import free_port, received
from timeline.dispatch.claim import ClaimedBatch
from timeline.exceptions import BrokerUnavailable
from timeline.tasks.broker import poll_queue, queue_of, send_poll


@pytest.fixture
def batch():
    return ClaimedBatch("job.one", "default", uuid.uuid4(), [uuid.uuid4(), uuid.uuid4()])


def cut_off(sender):
    """Shut the socket under a sender's connection, as a broker that restarts does."""
    channel = sender._connection.default_channel
    if hasattr(channel, "pool"):  # Redis
        channel.pool.disconnect()
    else:
        channel.connection.transport.sock.shutdown(socket.SHUT_RDWR)


class TestSend:
    def test_sends_ids_and_token_and_nothing_else(self, over, broker, batch):
        sender = over(broker.url, broker.prefix)

        sender.send(batch, using="default")

        [(headers, _properties, (args, kwargs, _embed))] = received(broker, queue_of("default"))
        assert headers["task"] == "timeline.run"
        assert args == []
        assert kwargs == {
            "task_ids": [str(task_id) for task_id in batch.task_ids],
            "token": str(batch.token),
            "using": "default",
        }
        assert (headers["eta"], headers["expires"], headers["retries"]) == (None, None, 0)

    def test_uses_its_connection_again_until_it_fails(self, over, broker, batch):
        sender = over(broker.url, broker.prefix)
        sender.send(batch, using="default")
        first = sender._connection

        sender.send(batch, using="default")

        assert sender._connection is first
        assert len(received(broker, queue_of("default"))) == 2

    def test_connects_anew_after_the_broker_cut_it_off(self, over, broker, batch):
        """What was to be sent when it was noticed is not lost silently: the sender says so, or has sent it."""
        sender = over(broker.url, broker.prefix)
        sender.connect()
        cut_off(sender)

        try:
            sender.send(batch, using="default")
        except BrokerUnavailable:
            sender.send(batch, using="default")

        assert len(received(broker, queue_of("default"))) == 1

    def test_polls_have_a_queue_of_their_own_and_expire_after_an_interval(self, over, broker):
        sender = over(broker.url, broker.prefix)

        send_poll(sender, "other")

        assert received(broker, queue_of("default")) == []
        [(headers, _properties, (_args, kwargs, _embed))] = received(broker, poll_queue())
        assert (headers["task"], kwargs) == ("timeline.poll", {"using": "other"})
        assert headers["expires"] is not None
        assert headers["eta"] is None


class TestBrokerThatIsDown:
    @pytest.mark.parametrize("scheme", ["redis", "amqp"])
    def test_is_given_up_at_once_when_it_refuses(self, over, batch, scheme):
        sender = over(f"{scheme}://127.0.0.1:{free_port()}//")

        for act in (sender.connect, lambda: sender.send(batch, using="default")):
            with pytest.raises(BrokerUnavailable, match="refused"):
                act()

    @pytest.mark.parametrize("scheme", ["redis", "amqp"])
    def test_is_given_up_soon_when_it_does_not_answer(self, over, mute, batch, scheme):
        """A minute here means: bounded, and not for ever."""
        sender = over(f"{scheme}://127.0.0.1:{mute}//")
        begun = time.monotonic()

        with pytest.raises(BrokerUnavailable):
            sender.send(batch, using="default")

        assert time.monotonic() - begun < 60
