"""The transaction of a poll: short, and ended by the database if it should not be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connections, transaction

LOCK_TIMEOUT: Final = "5s"  # Rows that others hold are skipped; this is for locks on whole tables.
STATEMENT_TIMEOUT: Final = "30s"


@contextmanager
def polling(using: str) -> Iterator[None]:
    """
    Open a transaction whose statements the database bounds in time.

    The bounds end with the transaction, so that a connection shared through PgBouncer is given back as it was. SQLite has
    the timeout of the host's settings.
    """
    connection = connections[using]
    with transaction.atomic(using=using):
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true)",
                    [LOCK_TIMEOUT, STATEMENT_TIMEOUT],
                )
        yield
