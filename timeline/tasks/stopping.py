"""
A Celery worker that is told to stop: its processes are told, and what it has fetched goes back to its queue.

Celery lets the handlers under way end first, however long they take, and keeps until then what no process of the pool has
taken: messages that were fetched ahead, and with Redis one more, which comes in answer to what was asked before. Nobody would
run what they carry until the next poll sends it again.
"""

from __future__ import annotations

from contextlib import suppress
from ctypes import c_bool
from multiprocessing.sharedctypes import RawValue
from queue import Empty
from typing import Any, Final

from celery.bootsteps import StartStopStep
from celery.signals import worker_init, worker_shutting_down
from kombu.common import ignore_errors
from kombu.exceptions import MessageStateError

NAME: Final = "timeline.run"  # Of the messages that are given back. Polls expire, and others come.
GRACE: Final = 1.0  # Seconds more than Redis is asked to wait, until its answer is there.

_stopping = RawValue(c_bool, False)  # Shared with the processes of the pool, which are forked off later.


class GiveBack(StartStopStep):
    """
    Part of a worker, which stops between two others of Celery's: when nothing is fetched any more, and before handlers are
    waited for.
    """

    requires = ("celery.worker.components:Pool",)  # What another one needs is stopped after it.

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        self._fetched: set[Any] = set()

    def close(self, worker: Any) -> None:
        """Tell the processes; where a command of Celery's stops the worker, no signal does. See what they have not taken."""
        stop()
        self._fetched = _fetched(worker.state)  # Celery is about to forget them.

    def stop(self, worker: Any) -> None:
        """Give back what no process has taken. If the broker is away, a later poll sends it again."""
        consumer = worker.consumer
        if consumer.connection is None or consumer.task_consumer is None:
            return
        with ignore_errors(consumer.connection):
            for request in self._fetched | _fetched(worker.state):
                if not request.acknowledged:
                    request.acknowledged = (
                        True  # If a process takes it at this moment all the same, it finds no more to do.
                    )
                    # At once: the loop in which Celery does such things is over. A thread may have taken it just now.
                    with suppress(MessageStateError):
                        request.message.reject(requeue=True)
            _give_back_asked_for(consumer.task_consumer.channel)

    def terminate(self, worker: Any) -> None:
        """Do nothing: handlers are not waited for, and Celery gives all back in a moment."""


def _fetched(state: Any) -> set[Any]:
    """Our messages that wait for a process to take them."""
    waiting = set(state.reserved_requests) - set(state.active_requests)
    return {request for request in waiting if request.name == NAME and not request.acknowledged}


def _give_back_asked_for(channel: Any) -> None:
    """
    Read what Redis has been asked for: kombu puts back what comes now. It would read it itself when all has ended; over
    other brokers there is no such thing.
    """
    asked = getattr(channel, "_in_poll", None)
    if asked and asked.can_read(timeout=channel.brpop_timeout + GRACE):
        with suppress(Empty):
            channel._brpop_read()


@worker_init.connect
def _take_part(sender: Any, **_extra: Any) -> None:
    sender.app.steps["worker"].add(GiveBack)


@worker_shutting_down.connect
def stop(**_extra: Any) -> None:
    """Have this worker, with all its processes, enter no further handler."""
    _stopping.value = True


def is_stopping() -> bool:
    """Whether this worker was told to stop."""
    return bool(_stopping.value)
