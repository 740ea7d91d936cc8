"""Which kinds of tasks there are."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db import connections

from timeline.models.statements import statement


def task_keys_there(using: str) -> list[str]:
    """The different task keys of a database's rows. One short statement a key, however many rows there are."""
    connection = connections[using]
    sql = statement("next_task_key", connection.vendor)
    keys: list[str] = []
    with connection.cursor() as cursor:
        cursor.execute(sql, [""])
        while row := cursor.fetchone():
            keys.append(row[0])
            cursor.execute(sql, [row[0]])
    return keys


def ready_kinds(task_keys: Sequence[str], *, using: str) -> dict[str, int]:
    """
    Tell which of these kinds have available tasks. One probe of an index a kind.

    Returns:
        Task key → the first priority among its available tasks; smaller is more urgent.
    """
    connection = connections[using]
    keys = list(task_keys) if connection.vendor == "postgresql" else json.dumps(list(task_keys))
    with connection.cursor() as cursor:
        cursor.execute(statement("ready_kinds", connection.vendor), {"task_keys": keys})
        return dict(cursor.fetchall())
