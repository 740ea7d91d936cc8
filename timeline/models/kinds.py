"""Which kinds of tasks there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import connections

from timeline.models.statements import statement


class First(NamedTuple):
    """
    Of a kind's available tasks the one to be run first.

    Args:
        priority: Smaller is more urgent.
        due_at: When it was due; None on SQLite.
    """

    priority: int
    due_at: datetime | None


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


def ready_kinds(task_keys: Sequence[str], *, using: str) -> dict[str, First]:
    """
    Tell which of these kinds have available tasks. One probe of an index a kind.

    Returns:
        Task key → the first of its available tasks.
    """
    connection = connections[using]
    keys = list(task_keys) if connection.vendor == "postgresql" else json.dumps(list(task_keys))
    with connection.cursor() as cursor:
        cursor.execute(statement("ready_kinds", connection.vendor), {"task_keys": keys})
        return {task_key: First(priority, due_at) for task_key, priority, due_at in cursor.fetchall()}
