"""Which kinds of tasks there are."""

from __future__ import annotations

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
