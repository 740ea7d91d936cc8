"""The transactions of a poll: short, and ended by the database if they should not be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from django.db import connections

from timeline.dialects import dialect_of
from timeline.store.guiding import as_select
from timeline.store.isolating import atomic

# Rows that others hold are skipped: the first is for locks on whole tables.
BOUNDS: Final = {"lock_timeout": "5s", "statement_timeout": "30s"}
AT_ONCE: Final = {"lock_timeout": "20ms", "statement_timeout": "30s"}  # For what is tried, and left if somebody has it.

# Of a poll that stands still in the middle, or cannot be reached any more: what it locked is let go of. Workers wait for that
# to give a sign. Not in a transaction of the caller's, which may take its time.
IDLE: Final = {"idle_in_transaction_session_timeout": "10s"}


@contextmanager
def polling(using: str, bounds: Mapping[str, str] = BOUNDS) -> Iterator[None]:
    """
    Open a transaction whose statements the database bounds in time.

    Args:
        using: Database alias.
        bounds: What PostgreSQL calls them.

    The bounds end with the transaction, so that a connection shared through PgBouncer is given back as it was. SQLite has
    the timeout of the host's settings.
    """
    connection = connections[using]
    idle = {} if connection.in_atomic_block else IDLE
    with atomic(using=using):
        if dialect_of(using).has_settings:
            with connection.cursor() as cursor:
                cursor.execute(as_select({**idle, **bounds}))
        yield
