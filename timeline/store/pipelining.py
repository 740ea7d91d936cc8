"""Pipelining: send statements without waiting for their results, so that the database works while Python prepares more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import connections

from timeline.dialects import is_by_psycopg3

_NOT_PIPELINED: Final = 0  # The number in libpq.


def can_pipeline(using: str) -> bool:
    """Whether statements can be sent without waiting: on PostgreSQL with psycopg 3, and libpq 14 or later."""
    connection: Any = connections[using]
    return is_by_psycopg3(connection) and connection.Database.Pipeline.is_supported()


def takes_texts(connection: Any) -> bool:
    """
    Whether several statements can be sent now as one text, in one trip.

    For this, Django's cursors must bind values on the client, where statements are never prepared: the server does not bind
    values for several statements in one text. And such a text cannot be pipelined.
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

    The result of a statement is waited for when it is read (``fetchone``, ``fetchall``). If a statement fails whose result
    nobody reads, the error is raised by a later statement or at the end of this block; statements sent after it are not
    executed. This does not work with querysets made by ``raw``, which look at the result before they fetch it.
    """
    connection: Any = connections[using]
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield
