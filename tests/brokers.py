"""
Brokers that tests run over: Redis and RabbitMQ, on loopback, or where ``REDIS_URL`` and ``AMQP_URL`` say.

Each test has queues of its own, by a prefix, and takes them away at its end; nothing else there is touched.
"""

from __future__ import annotations

import json
import socket
import uuid
from functools import cache

import pytest
import redis
from kombu import Connection

from tests.tools import AMQP, REDIS, TOOLS

URLS = {"redis": REDIS, "rabbitmq": AMQP}


@cache
def answers(kind: str) -> bool:
    """Whether a broker of this kind is there."""
    with Connection(URLS[kind], connect_timeout=2) as connection:
        try:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=2)
        except Exception:  # noqa: BLE001 (whatever it is, there is none to test with)
            return False
    return True


class Broker:
    """One broker, as a test uses it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.url = URLS[kind]
        self.prefix = f"timeline-test-{uuid.uuid4().hex[:12]}"

    @property
    def queues(self) -> list[str]:
        """Names of its queues that this test uses."""
        return [f"{self.prefix}.{name}" for name in ("default", "loop")] + [f"{self.prefix}-poll"]

    def wipe(self) -> int:
        """Lose the messages that wait; say how many there were."""
        with Connection(self.url) as connection:
            channel = connection.channel()
            return sum(self._purge(channel, queue) for queue in self.queues)

    def remove(self) -> None:
        """Take the queues away, and what Celery put there to lead to them."""
        with Connection(self.url) as connection:
            channel = connection.channel()
            for queue in self.queues:
                self._purge(channel, queue)
                channel.queue_delete(queue)
                channel.exchange_delete(queue)
        if self.kind == "redis":
            with redis.from_url(self.url) as client:
                for queue in self.queues:
                    client.delete(f"_kombu.binding.{queue}", f"_kombu.binding_permanent.{queue}")

    def _purge(self, channel, queue: str) -> int:
        channel.queue_declare(queue, durable=True, auto_delete=False)
        return channel.queue_purge(queue) or 0


@pytest.fixture(params=sorted(URLS))
def broker(request):
    """A broker of each kind; skipped, with the remedy, where there is none."""
    if not answers(request.param):
        pytest.skip(f"no {request.param} answers: {TOOLS[request.param].remedy}")
    made = Broker(request.param)
    yield made
    made.remove()


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def received(broker: Broker, queue: str) -> list[tuple]:
    """Take the messages that wait in a queue: headers, properties and body of each."""
    with Connection(broker.url) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True, auto_delete=False)
        found = []
        while (raw := channel.basic_get(queue, no_ack=True)) is not None:
            message = channel.message_to_python(raw) if hasattr(channel, "message_to_python") else raw
            found.append((message.headers, message.properties, json.loads(message.body)))
        return found
