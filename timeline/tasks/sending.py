"""The way to the broker: a connection of our own that fails quickly, and messages without a time of their own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from celery import current_app
from kombu import Connection
from kombu.exceptions import KombuError

from timeline.conf import get_settings
from timeline.dispatch.claiming import ClaimedBatch
from timeline.exceptions import BrokerUnavailable

CONNECT_TIMEOUT: Final = 2  # Seconds.
# Each transport takes the options that it knows. Without ``max_retries``, kombu would try to connect for ever.
_TRANSPORT: Final[dict[str, Any]] = {
    "max_retries": 0,
    "interval_start": 0,
    "connect_retries_timeout": CONNECT_TIMEOUT,
    "socket_connect_timeout": CONNECT_TIMEOUT,
    "socket_timeout": CONNECT_TIMEOUT,
    "confirm_publish": True,
    "read_timeout": CONNECT_TIMEOUT,
    "write_timeout": CONNECT_TIMEOUT,
}


def queue_of(queue: str) -> str:
    """Name the Celery queue that carries the tasks of a declared queue: ``timeline.default``, ``timeline.mail``."""
    return f"{get_settings().QUEUE_PREFIX}.{queue}"


def poll_queue() -> str:
    """Name the Celery queue that carries polls, ``timeline-poll``: no declared queue has that name."""
    return f"{get_settings().QUEUE_PREFIX}-poll"


class CelerySender(threading.local):
    """
    Sends messages over a connection that is kept, one for each thread and process.

    In an app whose tasks run eagerly, nothing is sent: the task runs at once.
    """

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._owner = 0

    def connect(self) -> None:
        """
        Check that the broker is there.

        Raises:
            BrokerUnavailable: within a few seconds.
        """
        if not current_app.conf.task_always_eager:
            with self._connected():
                pass

    def send(self, batch: ClaimedBatch, *, using: str) -> None:
        """
        Send the ids of a batch and its token.

        Raises:
            BrokerUnavailable: within a few seconds.
        """
        task_ids = [str(task_id) for task_id in batch.task_ids]
        kwargs = {"task_ids": task_ids, "token": str(batch.token), "using": using}
        self.publish("timeline.run", kwargs, queue=queue_of(batch.queue))

    def publish(
        self, task: str, kwargs: dict[str, Any], *, queue: str, expires: float | None = None, alone: bool = False
    ) -> None:
        """
        Send one message, once.

        Args:
            task: Name of the Celery task.
            kwargs: JSON.
            queue: Name of the Celery queue.
            expires: Seconds after which the message is dropped; None: never.
            alone: Whether to send nothing if another message waits in the queue.

        Raises:
            BrokerUnavailable: within a few seconds.
        """
        celery_task = current_app.tasks[task]
        options: dict[str, Any] = {"queue": queue, "expires": expires, "retry": False}
        if current_app.conf.task_always_eager:
            celery_task.apply_async(kwargs=kwargs)
            return
        with self._connected() as connection:
            if alone and _waiting(connection, queue):
                return
            producer = current_app.amqp.Producer(connection, auto_declare=False)
            celery_task.apply_async(kwargs=kwargs, producer=producer, **options)

    def close(self) -> None:
        """Close the connection; the next use makes another."""
        connection, self._connection = self._connection, None
        if connection is not None and self._owner == os.getpid():  # After a fork, the connection belongs to the parent.
            connection.release()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Lend the connection. After an error it is closed."""
        connection = self._connection
        if connection is None or self._owner != os.getpid():
            given = current_app.conf.broker_transport_options or {}
            connection = current_app.connection_for_write(
                connect_timeout=CONNECT_TIMEOUT, transport_options={**_TRANSPORT, **given, "max_retries": 0}
            )
            self._connection, self._owner = connection, os.getpid()
        errors: tuple[type[BaseException], ...] = (
            KombuError,
            OSError,
            *connection.connection_errors,
            *connection.channel_errors,
        )
        try:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_TIMEOUT)
            yield connection
        except errors as error:
            self.close()
            raise BrokerUnavailable(error) from error


def _waiting(connection: Connection, queue: str) -> int:
    """How many messages wait in a queue. If the queue does not exist, it is made."""
    declared: Any = current_app.amqp.queues[queue](connection.default_channel).queue_declare()
    return int(declared.message_count)
