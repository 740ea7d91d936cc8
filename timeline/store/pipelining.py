"""Pipelining: send statements without waiting for what they give, so that the database works while Python prepares the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections

from timeline.dialects import is_by_psycopg3


def can_pipeline(using: str) -> bool:
    """Whether database and driver take statements ahead: PostgreSQL by psycopg 3, with libpq 14 or later."""
    connection: Any = connections[using]
    return is_by_psycopg3(connection) and connection.Database.Pipeline.is_supported()


@contextmanager
def pipelining(using: str) -> Iterator[None]:
    """
    Send statements without waiting for each, inside the caller's transaction.

    What one gives is waited for where it is asked for (``fetchone``, ``fetchall``). What goes wrong in one that nobody asks is
    raised by a later one or at the end of this block; none that was sent after it is executed. Not for querysets made with
    ``raw``: these look at what they were given before they ask for it.
    """
    connection: Any = connections[using]
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield
