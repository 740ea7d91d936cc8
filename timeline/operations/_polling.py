"""The transactions of a poll: short, and ended by the database if they should not be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connections, transaction

from timeline.models.guiding import as_select

# Rows that others hold are skipped: the first is for locks on whole tables.
BOUNDS: Final = {"lock_timeout": "5s", "statement_timeout": "30s"}


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
                cursor.execute(as_select(BOUNDS))
        yield
