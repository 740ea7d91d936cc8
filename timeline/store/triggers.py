"""
Install the triggers that guard the lifecycle and rows that others refer to, and the functions that statements call. They are
installed after each run of migrations, not by a migration: on SQLite, a table that a migration makes anew loses them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from django.db import ProgrammingError, connections, transaction

from timeline.dialects import dialect_of
from timeline.features.machines import one_trip
from timeline.models.event import Event
from timeline.models.machine_rows import RunEntry
from timeline.models.run import TimelineRun
from timeline.models.task import ScheduledTask
from timeline.models.task_records import LogEntry
from timeline.store import kept_statements

# Name of a trigger, which is the name of its SQL file, too → its table. On both databases.
TRIGGERS: Final = {
    "guard_transition": ScheduledTask._meta.db_table,
    "guard_final": ScheduledTask._meta.db_table,
    "guard_log": LogEntry._meta.db_table,
    "guard_move": TimelineRun._meta.db_table,
    "guard_entry": RunEntry._meta.db_table,
}
# In place of foreign keys, which PostgreSQL checks for each row. A row refers only to rows that its writer has written or
# locked, so that only deletes have to be refused.
KEEPERS: Final = {
    "keep_event_of_run": Event._meta.db_table,
    "keep_event_of_task": Event._meta.db_table,
    "keep_run_of_task": TimelineRun._meta.db_table,
    "keep_task_of_log": ScheduledTask._meta.db_table,
}
FUNCTIONS: Final = ("guard_function", "keep_function")  # The functions of triggers.
# Functions that statements call; each is in ``function_….sql``.
CALLED: Final = (
    "record_step",
    "record_last_step",
    "record_place",
    "is_awaited",
    "move_runs",
    "to_move",
    one_trip.NAME,
)
# More functions that statements call, each made of a whole statement.
KEPT: Final = {kept.name: kept for kept in kept_statements.KEPT}
COMPOSED: Final = f"function_{one_trip.NAME}"  # Composed of rules that other statements have, too.
# Functions that belong to a single trigger, and are installed with it.
OWN_FUNCTIONS: Final = {
    "guard_transition": "transition_function",
    "guard_final": "final_function",
    "guard_move": "move_function",
}


def triggers_of(using: str) -> dict[str, str]:
    """Name of each trigger of a database → its table."""
    return TRIGGERS if dialect_of(using).has_foreign_keys else TRIGGERS | KEEPERS


def install_triggers(using: str) -> list[str]:
    """Install or replace the triggers of the tables that exist; gives their names."""
    tables = connections[using].introspection.table_names()
    if kept_statements.TABLE not in tables:
        return []  # The database may be of a kind that we do not support.
    dialect = dialect_of(using)
    triggers = list(triggers_of(using))
    for name in (*FUNCTIONS, *_called(), *OWN_FUNCTIONS.values()) if dialect.has_trigger_functions else ():
        _install(_text_of(name, using), using=using)
    for kept in KEPT.values() if dialect.has_trigger_functions else ():
        _install_kept(kept, using)
    for name in triggers:
        if dialect.has_trigger_functions:  # The statement has CREATE OR REPLACE.
            _install(dialect.sql(name), using=using)
        else:
            _install(f"DROP TRIGGER IF EXISTS timeline_{name}", dialect.sql(name), using=using)
    if dialect.has_trigger_functions:
        _install(dialect.sql("seal"), using=using)
    return triggers


def _text_of(name: str, using: str) -> str:
    """The text of a function. The table that a guard reads is named with its schema."""
    if name == COMPOSED:
        return one_trip.function_text(using)
    text = dialect_of(using).sql(name)
    if "{schema}" not in text:
        return text
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("schema_of_runs"))
        schema, as_text = cursor.fetchone()
    return text.replace("{schema}", schema).replace("{schema_text}", as_text)


def _called() -> list[str]:
    return [f"function_{name}" for name in CALLED]


def _install_kept(kept: kept_statements.Kept, using: str) -> None:
    text = kept.function_text(using)
    try:
        _install(text, using=using)
    except ProgrammingError:  # PostgreSQL replaces no function that returned other columns.
        _install(kept.drop, text, using=using)


def _install(*statements: str, using: str) -> None:
    """
    Execute statements in one transaction, so that nothing is missing at any time. Processes that run ``migrate`` take turns:
    if two replaced the same function, PostgreSQL would refuse the second.
    """
    dialect = dialect_of(using)
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        if dialect.has_trigger_functions:
            cursor.execute(dialect.sql("lock_install"))
        for statement in statements:
            cursor.execute(statement)


def missing_triggers(using: str) -> list[str]:
    """Names of triggers, and of functions that statements call, that are missing though our tables exist."""
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("triggers"))
        return missing_among({name for [name] in cursor.fetchall()}, using=using)


def missing_among(there: Collection[str], *, using: str) -> list[str]:
    """The same, from the names that the statement ``triggers`` has returned."""
    if kept_statements.TABLE not in there:
        return []
    functions = (*CALLED, *KEPT) if dialect_of(using).has_trigger_functions else ()
    return [name for name in (*triggers_of(using), *functions) if f"timeline_{name}" not in there]
