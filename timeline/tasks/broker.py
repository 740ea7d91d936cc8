"""The way to the broker: a connection of our own that fails quickly, and messages without a time of their own."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, Final

from celery import current_app
from kombu import Connection
from kombu.exceptions import KombuError

from timeline.conf import get_settings
from timeline.dispatch.claim import ClaimedBatch
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

logger = logging.getLogger("timeline")
GAP: Final = 0.05  # Seconds between hints: tasks that become due in this time share the next hint.
SILENCE: Final = 30.0  # Seconds without hints, after the broker did not take one.


def queue_of(queue: str) -> str:
    """Name the Celery queue that carries the tasks of a declared queue: ``timeline.default``, ``timeline.mail``."""
    return f"{get_settings().QUEUE_PREFIX}.{queue}"


def poll_queue() -> str:
    """Name the Celery queue that carries polls, ``timeline-poll``: no declared queue has that name."""
    return f"{get_settings().QUEUE_PREFIX}-poll"


class CelerySender(threading.local):
    """Sends messages over a connection that is kept, one for each thread and process; eager apps run the task at once."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._owner = 0

    def connect(self) -> None:
        """Check that the broker is there; ``BrokerUnavailable`` within a few seconds if not."""
        if not current_app.conf.task_always_eager:
            with self._connected():
                pass

    def send(self, batch: ClaimedBatch, *, using: str) -> None:
        """Send the ids of a batch and its token; ``BrokerUnavailable`` within a few seconds if that fails."""
        task_ids = [str(task_id) for task_id in batch.task_ids]
        kwargs = {"task_ids": task_ids, "token": str(batch.token), "using": using}
        self.publish("timeline.run", kwargs, queue=queue_of(batch.queue))

    def publish(
        self, task: str, kwargs: dict[str, Any], *, queue: str, expires: float | None = None, alone: bool = False
    ) -> None:
        """
        Send one message, once, dropped after ``expires`` seconds; ``BrokerUnavailable`` within a few seconds if that fails.
        ``alone``: nothing is sent while another message waits in the queue.
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


class Hinter:
    """Sends polls from a thread of its own, so that the code that made a task due does not wait."""

    def __init__(self, sender: CelerySender) -> None:
        self._sender = sender
        self._due: set[str] = set()
        self._woken = threading.Condition()
        self._thread: threading.Thread | None = None
        self._owner = 0
        self._silent_until = 0.0

    def work_due(self, *, using: str, **_extra: Any) -> None:
        """Note that a task is due in this database. Receives ``timeline.signals.work_due``."""
        if monotonic() < self._silent_until:
            return
        if not has_broker():
            self._silent_until = monotonic() + GAP  # Celery takes its time to tell: it is not asked for each task.
            return
        if self._owner != os.getpid():  # Threads do not survive a fork, and a lock may have been held.
            self._woken, self._thread, self._owner = threading.Condition(), None, os.getpid()
        with self._woken:
            self._due.add(using)
            self._woken.notify()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._hint, name="timeline-hints", daemon=True)
                self._thread.start()

    def _hint(self) -> None:
        while True:
            with self._woken:
                self._woken.wait_for(lambda: self._due)
                due, self._due = self._due, set()
            try:
                for using in sorted(due) if has_broker() else ():
                    send_poll(self._sender, using)
            except BrokerUnavailable as error:
                self._silent_until = monotonic() + SILENCE
                logger.warning("No hints for %g s; polls go on by themselves. %s", SILENCE, error)
            sleep(GAP)


def send_poll(sender: CelerySender, using: str) -> None:
    """Send a poll, dropped if nobody takes it within an interval; none while another one waits to be taken."""
    expires = max(get_settings().POLL_INTERVAL.total_seconds(), 1.0)
    sender.publish("timeline.poll", {"using": using}, queue=poll_queue(), expires=expires, alone=True)


def has_broker() -> bool:
    """Whether this process has a Celery app with a broker: without one, its tasks run eagerly or not at all."""
    conf = current_app.conf
    return bool(conf.broker_write_url or conf.broker_url) and not conf.task_always_eager


hinter = Hinter(CelerySender())
