"""
The database's own guard: triggers that pass exactly the lifecycle's moves, and keep what other rows name.

Installed after each migration and not by one, because a table that a migration remakes (on SQLite: most changes of a
field) loses them.
"""

from __future__ import annotations

from typing import Final

from django.db import connections

from timeline.models.event import Event
from timeline.models.log import LogEntry
from timeline.models.run import TimelineRun
from timeline.models.statements import statement
from timeline.models.task import ScheduledTask

# Name of the trigger, as in the SQL file of the same name → its table. On each database.
TRIGGERS: Final = {
    "guard_transition": ScheduledTask._meta.db_table,
    "guard_final": ScheduledTask._meta.db_table,
    "guard_log": LogEntry._meta.db_table,
}
# In place of foreign keys, which PostgreSQL checks row by row: what is written names what its writer wrote or holds, so that
# only deletes are left to refuse.
KEEPERS: Final = {
    "keep_event_of_run": Event._meta.db_table,
    "keep_event_of_task": Event._meta.db_table,
    "keep_run_of_task": TimelineRun._meta.db_table,
    "keep_task_of_log": ScheduledTask._meta.db_table,
}
FUNCTIONS: Final = ("guard_function", "keep_function")


def triggers_of(vendor: str) -> dict[str, str]:
    """Name of each trigger of such a database → its table."""
    return TRIGGERS | KEEPERS if vendor == "postgresql" else TRIGGERS


def install_triggers(using: str) -> list[str]:
    """
    Put the triggers on the tables that are there, in place of those that stand.

    Returns:
        Names of the triggers put.
    """
    connection = connections[using]
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        put = [name for name, table in triggers_of(connection.vendor).items() if table in tables]
        for name in FUNCTIONS if put and connection.vendor == "postgresql" else ():
            cursor.execute(statement(name, connection.vendor))
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
    wanted = triggers_of(connection.vendor).items()
    return [name for name, table in wanted if table in tables and f"timeline_{name}" not in standing]
