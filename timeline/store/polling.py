"""The transactions of a poll. They are short, and the database ends them if they take too long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from django.db import connections

from timeline.dialects import dialect_of
from timeline.store.guiding import as_select
from timeline.store.isolating import atomic

# Rows that others have locked are skipped. The ``lock_timeout`` is for locks on whole tables.
BOUNDS: Final = {"lock_timeout": "5s", "statement_timeout": "30s"}
AT_ONCE: Final = {"lock_timeout": "20ms", "statement_timeout": "30s"}  # For work that is left if somebody has the lock.

# If a poll stops in the middle, or cannot be reached any more, the database ends its transaction and so releases its locks.
# Otherwise workers that want to give a sign would wait for them. This is not set in a transaction of the caller's, which may
# take longer.
IDLE: Final = {"idle_in_transaction_session_timeout": "10s"}

# For signs and leases, by which a worker says that it is alive. They do not wait for a slow disk: meanwhile the worker would
# seem dead, and would keep rows locked that its handlers need. If the database crashes before they are on the disk, the worker
# says the same again with its next beat.
UNFLUSHED: Final = {"synchronous_commit": "off"}


@contextmanager
def polling(using: str, bounds: Mapping[str, str] = BOUNDS, *, flushes: bool = True) -> Iterator[None]:
    """
    Open a transaction with limits for the time of its statements.

    Args:
        using: Database alias.
        bounds: Settings of PostgreSQL.
        flushes: Whether the commit waits for the disk. In a transaction of the caller's, the caller decides this.

    The settings end with the transaction, so that a connection shared through PgBouncer is given back as it was. SQLite has
    the timeout in the host's settings.
    """
    connection = connections[using]
    own = {} if connection.in_atomic_block else IDLE if flushes else {**IDLE, **UNFLUSHED}
    with atomic(using=using):
        if dialect_of(using).has_settings:
            with connection.cursor() as cursor:
                cursor.execute(as_select({**own, **bounds}))
        yield
