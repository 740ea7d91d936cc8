"""The transactions of a poll: short, and ended by the database if they should not be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from django.db import connections, transaction

# Rows that others hold are skipped: the first is for locks on whole tables.
BOUNDS: Final = "SELECT set_config('lock_timeout', '5s', true), set_config('statement_timeout', '30s', true)"


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
                cursor.execute(BOUNDS)
        yield


def execute_bounded(cursor: Any, sql: str, parameters: Mapping[str, Any], *, using: str) -> None:
    """
    Execute one statement so bounded, which is the whole transaction. PostgreSQL only.

    Where psycopg 3 binds parameters, as Django has it unless told otherwise, bounds, statement and commit are one trip to the
    database, where they would be four; each takes its turn for the processor.
    """
    connection: Any = connections[using]
    if hasattr(connection.Database, "adapters") and not connection.features.uses_server_side_binding:
        cursor.execute(f"{BOUNDS};\n{sql}", parameters)
        cursor.nextset()
        return
    with polling(using):
        cursor.execute(sql, parameters)
