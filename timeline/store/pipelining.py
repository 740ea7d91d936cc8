"""Pipelining: send statements without waiting for what they give, so that the database works while Python prepares the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import connections

from timeline.dialects import is_by_psycopg3

_NOT_PIPELINED: Final = 0  # As libpq has it.


def can_pipeline(using: str) -> bool:
    """Whether database and driver take statements ahead: PostgreSQL by psycopg 3, with libpq 14 or later."""
    connection: Any = connections[using]
    return is_by_psycopg3(connection) and connection.Database.Pipeline.is_supported()


def takes_texts(connection: Any) -> bool:
    """
    Whether several statements can be sent as one text now, in one trip.

    Django's cursors must send texts as they are, which they never prepare then: several statements take no values that the
    server puts in, and cannot be pipelined.
    """
    if not is_by_psycopg3(connection):
        return False
    driver = connection.connection
    as_they_are = issubclass(driver.cursor_factory, connection.Database.ClientCursor)
    return as_they_are and driver.pgconn.pipeline_status == _NOT_PIPELINED


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
