"""Break a transaction off from outside: another connection ends the one that it is on."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db import connections

from timeline.dialects import dialect_of


class Transaction(NamedTuple):
    """
    A transaction, as other connections of its server see it. PostgreSQL only.

    Args:
        pid: Of the server's process that runs it.
        since: When it began, by the server's clock: a number of a process may come again.
    """

    pid: int
    since: datetime


def break_off(transaction: Transaction, *, using: str) -> bool:
    """
    End the connection that a transaction is on, and with it the transaction, unless that is over.

    Args:
        transaction: Of the same user.
        using: Alias of its database; on this thread's own connection.

    Returns:
        Whether the server was told to. Not so where the transaction is over or cannot be seen from here.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("break_off"), transaction._asdict())
        return cursor.fetchone() is not None
