"""Break a transaction off from outside: another connection ends the connection of the transaction."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db import connections

from timeline.dialects import dialect_of


class Transaction(NamedTuple):
    """
    A transaction, as other connections of its server see it. PostgreSQL only.

    Args:
        pid: Number of the process of the server that runs it.
        since: When it began, by the server's clock. It is needed since the server can use the number of a process again.
    """

    pid: int
    since: datetime


def break_off(transaction: Transaction, *, using: str) -> bool:
    """
    End the connection of a transaction, and with it the transaction, unless the transaction has ended already.

    Args:
        transaction: A transaction of the same database user.
        using: Alias of its database. The statement is executed on the connection of this thread.

    Returns:
        Whether the server was told to end it. False: the transaction has ended, or cannot be seen from here.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("break_off"), transaction._asdict())
        return cursor.fetchone() is not None
