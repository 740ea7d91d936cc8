"""
The database's own guard: triggers that pass exactly the lifecycle's moves.

Installed after each migration and not by one, because a table that a migration remakes (on SQLite: most changes of a
field) loses them.
"""

from __future__ import annotations

from typing import Final

from django.db import connections

from timeline.models.log import LogEntry
from timeline.models.statements import statement
from timeline.models.task import ScheduledTask

# Name of the trigger, as in the SQL file of the same name → its table.
TRIGGERS: Final = {
    "guard_transition": ScheduledTask._meta.db_table,
    "guard_final": ScheduledTask._meta.db_table,
    "guard_log": LogEntry._meta.db_table,
}


def install_triggers(using: str) -> list[str]:
    """
    Put the triggers on the tables that are there, in place of those that stand.

    Returns:
        Names of the triggers put.
    """
    connection = connections[using]
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        put = [name for name, table in TRIGGERS.items() if table in tables]
        if put and connection.vendor == "postgresql":
            cursor.execute(statement("guard_function", connection.vendor))
        for name in put:
            if connection.vendor == "sqlite":  # The others say CREATE OR REPLACE.
                cursor.execute(f"DROP TRIGGER IF EXISTS timeline_{name}")
            cursor.execute(statement(name, connection.vendor))
    return put


def missing_triggers(using: str) -> list[str]:
    """Name the triggers that do not stand though their tables do."""
    connection = connections[using]
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        cursor.execute(statement("triggers", connection.vendor))
        standing = {name for [name] in cursor.fetchall()}
    return [name for name, table in TRIGGERS.items() if table in tables and f"timeline_{name}" not in standing]
