"""Execute what was composed to change tasks; its answer is read when somebody asks for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from timeline.store.composing import Composed
from timeline.store.returning import RawRow, cursor_for_rows, rows_of


def executed(made: Composed, parameters: dict[str, Any], *, using: str) -> Callable[[], dict[UUID, RawRow]]:
    """
    Make changes and their log entries, or send them on their way (``pipelining``): PostgreSQL in one statement, SQLite in two.

    Args:
        made: The statement, or two.
        parameters: What goes into it.
        using: Database alias.

    Returns:
        What gives, by id, the columns of the rows that were changed, as they are then.
    """
    connection = connections[using]
    if not made.log:
        opened = ExitStack()
        cursor = opened.enter_context(cursor_for_rows(connection))
        cursor.execute(made.sql, parameters)

        def answer() -> dict[UUID, RawRow]:
            with opened:
                return rows_of(cursor, connection, made.columns)

        return answer
    with transaction.atomic(using=using, savepoint=False), connection.cursor() as cursor:
        cursor.execute(made.sql, parameters)
        changed = rows_of(cursor, connection, made.columns)
        written = [change for change in json.loads(parameters["changes"]) if UUID(change["id"]) in changed]
        cursor.execute(made.log, {"changes": json.dumps(written), "at": parameters["at"]})
    return lambda: changed
