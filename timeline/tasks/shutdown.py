"""
Stopping a Celery worker: its processes are told, and messages that it has fetched go back to their queue.

Celery first waits for running handlers, however long. Until then it keeps messages that no process has taken, with Redis one
more, which answers an earlier request. Nobody would run their tasks until the next poll sends them again.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ctypes import c_bool
from multiprocessing.sharedctypes import RawValue
from queue import Empty
from time import monotonic, sleep
from typing import Any, Final

import billiard.common
from celery.bootsteps import StartStopStep
from celery.signals import worker_init, worker_process_shutdown, worker_shutdown, worker_shutting_down
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections
from kombu.common import ignore_errors
from kombu.exceptions import MessageStateError

from timeline.registry import registry
from timeline.store.database_errors import drop, drop_unless_usable, is_of_the_connection
from timeline.tasks.broker import queue_of
from timeline.worker.outcome_keeper import OutcomeKeeper
from timeline.worker.threads import SideThread, can_use_side_thread

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


logger = logging.getLogger("timeline")
FIRST_PAUSE: Final = 0.1  # Seconds of the first pause; each later pause is twice as long,
LONGEST_PAUSE: Final = 5.0  # but no longer than this.
PATIENCE: Final = 30.0  # Seconds in all. Then the message goes back, and another worker may have it.
SLICE: Final = 0.2  # Seconds of one sleep: a worker that is told to stop notices it after so long.
_keepers: dict[tuple[int, str], OutcomeKeeper] = {}  # By process (a pool forks its processes) and database.
_lock = threading.Lock()


class _KeptThreads(threading.local):
    """The side threads of a thread that runs messages, by process and database."""

    def __init__(self) -> None:
        self.side_threads: dict[tuple[int, str], SideThread] = {}


_kept = _KeptThreads()


def renew(using: str) -> None:
    """
    Close a connection that is too old, does not answer or cannot write; the next statement opens a new one. With
    ``CELERY_DB_REUSE_MAX``, only this function checks it; without, Celery closes it after each task.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        return  # It is called by hand, in a transaction of the caller.
    connection.close_if_unusable_or_obsolete()
    drop_unless_usable(using)


@contextmanager
def beside(using: str) -> Iterator[SideThread | None]:
    """
    Lend this thread's side thread, with its connection; None if it could not see the rows of this thread. It stays for later
    messages. Its connection is renewed before, and closed afterwards if older than ``CONN_MAX_AGE``.
    """
    if not can_use_side_thread(using) or connections[using].in_atomic_block:
        yield None
        return
    key = os.getpid(), using
    if key not in _kept.side_threads:
        _kept.side_threads[key] = SideThread(using)
    side_thread = _kept.side_threads[key]
    side_thread.submit(renew, using)
    try:
        yield side_thread
    finally:
        side_thread.submit(_let_go, using).result()


def _let_go(using: str) -> None:
    connections[using].close_if_unusable_or_obsolete()


def persist(act: Callable[[], None], *, using: str, stopping: Callable[[], bool]) -> bool:
    """
    Make a call that is safe to repeat, and repeat it after growing pauses while the database does not answer. False: it was
    not made; the database stayed away, or the worker stops.
    """
    pause, give_up = FIRST_PAUSE, 0.0
    while True:
        begun = monotonic()
        try:
            act()
        except (DatabaseError, InterfaceError) as error:
            # In a transaction of the caller, it is called by hand.
            if connections[using].in_atomic_block or not is_of_the_connection(error):
                raise
            drop(using)
            if not give_up or monotonic() - begun > LONGEST_PAUSE:  # The database was there in between.
                pause, give_up = FIRST_PAUSE, monotonic() + PATIENCE
            logger.warning("The database failed; a message waits for it: %s", error)
        else:
            return True
        if not _wait(pause, give_up, stopping):
            return False
        pause = min(2 * pause, LONGEST_PAUSE)


def _wait(seconds: float, give_up: float, stopping: Callable[[], bool]) -> bool:
    """Wait; False: it is time to give up."""
    until = monotonic() + seconds
    while not stopping() and until < give_up:
        if (left := until - monotonic()) <= 0:
            return True
        sleep(min(left, SLICE))
    return False


def keeper_of(using: str) -> OutcomeKeeper | None:
    """The keeper of this process; None within a transaction, because the keeper's own connection could not see its rows."""
    if connections[using].in_atomic_block:
        return None
    with _lock:
        return _keepers.setdefault((os.getpid(), using), OutcomeKeeper(using))


@worker_process_shutdown.connect
@worker_shutdown.connect
def _close(**_extra: Any) -> None:
    """Try for a few seconds more. One signal is sent in each process of a pool, the other if there is no pool."""
    for (process, _using), unwritten in list(_keepers.items()):
        if process == os.getpid():
            unwritten.close()
