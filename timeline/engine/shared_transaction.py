"""Transactions of several handlers, which others may break off from outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from django.db import connections

from timeline.dialects import dialect_of
from timeline.engine.attempts import Attempt
from timeline.engine.callbacks import Watch
from timeline.store.transactions import atomic

# How long a transaction of ours waits for a lock that it can do without: far less than the second after which PostgreSQL looks
# for deadlocks, so that no other transaction is ended for it.
PATIENCE: Final = timedelta(milliseconds=50)


class Transaction(NamedTuple):
    """
    A transaction, as other connections see it: number of the server's process, and when it began by the server's clock.
    PostgreSQL only. The time is needed since the server uses the number of a process again.
    """

    pid: int
    since: datetime


def break_off(transaction: Transaction, *, using: str) -> bool:
    """End the connection of a transaction of the same database user; False: it has ended, or cannot be seen from here."""
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("break_off"), transaction._asdict())
        return cursor.fetchone() is not None


@contextmanager
def waiting_for_no_lock_long(using: str) -> Iterator[None]:
    with atomic(using=using):
        wait_for_no_lock_long(using)
        yield


@contextmanager
def shared_transaction(using: str, *, watch: Watch, entered: Sequence[Attempt]) -> Iterator[bool]:
    """
    A transaction of several handlers; if it can be broken off, no handler in it waits long for a lock that somebody has.
    Yields whether a handler that does not come back may hold up the others, because nobody may break it off.
    """
    is_within = connections[using].in_atomic_block
    with atomic(using=using, durable=True):
        transaction = None if is_within else wait_for_no_lock_long(using)
        if transaction is not None:
            watch.lend_transaction(entered, partial(break_off, transaction, using=using))
        try:
            yield transaction is None and not is_within and not dialect_of(using).has_one_writer
        finally:
            watch.lend_transaction((), None)


def wait_for_no_lock_long(using: str) -> Transaction | None:
    """
    Let the rest of the transaction wait for a lock no longer than ``PATIENCE``, nor than the host's own setting. None: nobody
    may break the transaction off, or the database has no such locks.
    """
    dialect = dialect_of(using)
    if dialect.has_one_writer:
        return None
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("lock_timeout"), {"most": f"{PATIENCE.total_seconds()} seconds"})
        pid, since, may_be_broken_off, _timeout = cursor.fetchone()
    return Transaction(pid, since) if may_be_broken_off else None
