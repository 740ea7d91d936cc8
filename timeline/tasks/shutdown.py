"""
Stopping a Celery worker: its processes are told, and messages that it has fetched go back to their queue.

Celery first waits for running handlers, however long. Until then it keeps messages that no process has taken, with Redis one
more, which answers an earlier request. Nobody would run their tasks until the next poll sends them again.
"""

from __future__ import annotations

from contextlib import suppress
from ctypes import c_bool
from multiprocessing.sharedctypes import RawValue
from queue import Empty
from typing import Any, Final

import billiard.common
from celery.bootsteps import StartStopStep
from celery.signals import worker_init, worker_shutting_down
from django.core.exceptions import ImproperlyConfigured
from kombu.common import ignore_errors
from kombu.exceptions import MessageStateError

from timeline.registry import registry
from timeline.tasks.broker import queue_of

NAME: Final = "timeline.run"  # The messages that are given back. Polls expire, and others come.
GRACE: Final = 1.0  # Redis is asked to wait for some time; its answer is waited for so many seconds longer.
_stopping = RawValue(c_bool, False)  # Shared with the processes of the pool, which are forked later.


class RefuseCoroutines(StartStopStep):
    """A part of a worker: it lets none start that has green threads, and gets messages of coroutines."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        if getattr(worker.pool_cls, "is_green", False):
            refuse_coroutines(worker.pool_cls.__module__.rpartition(".")[2], set(worker.app.amqp.queues.consume_from))


def refuse_coroutines(pool: str, queues: set[str]) -> None:
    """Refuse a worker of green threads (``ImproperlyConfigured``) if a task of its queues is an ``async def``."""
    asked = [
        definition.task_key(name)
        for definition in registry
        for name, task in definition.tasks.items()
        if task.is_async and queue_of(task.options.queue) in queues
    ]
    if asked:
        raise ImproperlyConfigured(
            f"A worker of the pool {pool} runs no coroutines (async def), and would get those of {', '.join(sorted(asked))}. "
            "Start it with -P threads or -P prefork; or give these tasks a queue of their own, and this worker (-Q) the others."
        )


class GiveBack(StartStopStep):
    """A part of a worker that stops between two of Celery's: after the fetching of messages, before the wait for handlers."""

    requires = ("celery.worker.components:Pool",)  # A part stops before the parts that it requires.

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        self._fetched: set[Any] = set()

    def close(self, worker: Any) -> None:
        """Tell the processes, since a command of Celery sends no signal, and note the messages that none has taken."""
        stop()
        self._fetched = _fetched(worker.state)  # Celery is about to forget these.

    def stop(self, worker: Any) -> None:
        """Give back messages that no process has taken. If the broker is away, a later poll sends them again."""
        consumer = worker.consumer
        if consumer.connection is None or consumer.task_consumer is None:
            return
        with ignore_errors(consumer.connection):
            for request in self._fetched | _fetched(worker.state):
                if not request.acknowledged:
                    request.acknowledged = (
                        True  # If a process takes the message at this moment anyway, it finds no tasks to run.
                    )
                    # At once, because Celery's loop has ended, which would do this. A thread may have taken it just now.
                    with suppress(MessageStateError):
                        request.message.reject(requeue=True)
            _give_back_asked_for(consumer.task_consumer.channel)

    def terminate(self, worker: Any) -> None:
        """Do nothing: here handlers are not waited for, and Celery itself gives everything back in a moment."""


def _fetched(state: Any) -> set[Any]:
    """Our messages that wait for a process to take them."""
    waiting = set(state.reserved_requests) - set(state.active_requests)
    return {request for request in waiting if request.name == NAME and not request.acknowledged}


def _give_back_asked_for(channel: Any) -> None:
    """Read the answer to the last request to Redis: kombu puts back a message that comes now. Other brokers have none."""
    asked = getattr(channel, "_in_poll", None)
    if asked and asked.can_read(timeout=channel.brpop_timeout + GRACE):
        with suppress(Empty):
            channel._brpop_read()


@worker_init.connect
def _take_part(sender: Any, **_extra: Any) -> None:
    sender.app.steps["worker"].update([GiveBack, RefuseCoroutines])


@worker_shutting_down.connect
def stop(**_extra: Any) -> None:
    """Have this worker, with all its processes, enter no further handler."""
    _stopping.value = True


def is_stopping() -> bool:
    """Whether this worker was told to stop."""
    return bool(_stopping.value)


def is_killed() -> bool:
    """Whether this process must end at once. Billiard then raises ``SystemExit`` anywhere: that is not the handler's fault."""
    return bool(getattr(billiard.common, "_should_have_exited", [False])[0])
