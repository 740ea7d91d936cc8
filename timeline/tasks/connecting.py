"""The database connections that a Celery process keeps from one message to the next."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections

from timeline.worker.side_thread import SideThread, can_use_side_thread


class _Kept(threading.local):
    """The side threads of a thread that runs messages, by process and database."""

    def __init__(self) -> None:
        self.side_threads: dict[tuple[int, str], SideThread] = {}


_kept = _Kept()


def renew(using: str) -> None:
    """
    Close a connection that is too old or does not answer any more; the next statement makes a new one.

    Celery closes the connection after each task, unless ``CELERY_DB_REUSE_MAX`` says otherwise; then only this function checks
    it.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        return  # It is called by hand, in a transaction of the caller.
    connection.close_if_unusable_or_obsolete()
    if connection.connection is not None and not connection.is_usable():
        connection.close()


@contextmanager
def beside(using: str) -> Iterator[SideThread | None]:
    """
    Lend the side thread of this thread, with its connection; None if it could not see the rows of this thread.

    The side thread stays for later messages. Its connection is treated as Celery treats that of a task: it is renewed before,
    and closed afterwards if it is older than ``CONN_MAX_AGE``.
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
