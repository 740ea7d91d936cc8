"""The database connections that a Celery process keeps from one message to the next."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, Final

from celery.signals import worker_process_shutdown, worker_shutdown
from django.db import DatabaseError, InterfaceError, connections

from timeline.store.database_errors import drop, drop_unless_usable, is_of_the_connection
from timeline.worker.outcome_keeper import OutcomeKeeper
from timeline.worker.threads import SideThread, can_use_side_thread

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
