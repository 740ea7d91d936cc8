"""
The guards in the database itself: triggers that allow only the moves of the lifecycle, and keep rows to which others refer. And
the functions that statements call, since PostgreSQL keeps the plans of functions.

They are installed after each run of migrations, not by a migration: if a migration makes a table anew, as SQLite does for most
changes of a field, the table loses its triggers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from django.db import ProgrammingError, connections, transaction
from django.db.migrations.recorder import MigrationRecorder

from timeline.dialects import dialect_of
from timeline.models.event import Event
from timeline.models.figure import Total
from timeline.models.log import LogEntry
from timeline.models.run import TimelineRun
from timeline.models.run_entry import RunEntry
from timeline.models.step import StepRecord
from timeline.models.task import ScheduledTask
from timeline.store import kept_statements, moving_at_once

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
# Tables that a trigger needs besides its own. Without them, columns that it names do not exist yet.
NEEDED: Final = {"guard_move": RunEntry._meta.db_table}
FUNCTIONS: Final = ("guard_function", "keep_function")  # The functions of triggers.
# Functions that statements call; each is in ``function_….sql``. Name → the table that came with it or before it. Without the
# table, ``migrate`` has not made the function yet, and then a missing function must not prevent ``migrate``.
CALLED: Final = {
    "record_step": StepRecord._meta.db_table,
    "record_last_step": StepRecord._meta.db_table,
    "record_place": StepRecord._meta.db_table,
    "is_awaited": Total._meta.db_table,
    "move_runs": Total._meta.db_table,
    "to_move": Total._meta.db_table,
    moving_at_once.NAME: Total._meta.db_table,
}
# More functions that statements call, each made of a whole statement. Before their migration, they are not missed.
KEPT: Final = {kept.name: kept for kept in kept_statements.KEPT}
COMPOSED: Final = f"function_{moving_at_once.NAME}"  # Composed of rules that other statements have, too.
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
    """
    Install the triggers on the tables that exist, and replace older ones.

    Returns:
        Names of the installed triggers.
    """
    connection = connections[using]
    tables = connection.introspection.table_names()
    if not {*TRIGGERS.values(), *KEEPERS.values()}.intersection(tables):
        return []  # The database may be of a kind that we do not support.
    dialect = dialect_of(using)
    put = _possible(using, tables)
    called = [f"function_{name}" for name in CALLED]
    functions = [*FUNCTIONS, *called, *(OWN_FUNCTIONS[name] for name in put if name in OWN_FUNCTIONS)]
    for name in functions if dialect.has_trigger_functions else ():
        _install(dialect.sql(name) if name != COMPOSED else moving_at_once.function_text(using), using=using)
    for kept in KEPT.values() if dialect.has_trigger_functions and kept_statements.TABLE in tables else ():
        _install_kept(kept, using)
    for name in put:
        if dialect.has_trigger_functions:  # The statement has CREATE OR REPLACE.
            _install(dialect.sql(name), using=using)
        else:
            _install(f"DROP TRIGGER IF EXISTS timeline_{name}", dialect.sql(name), using=using)
    return put


def _install_kept(kept: kept_statements.Kept, using: str) -> None:
    text = kept.function_text(using)
    try:
        _install(text, using=using)
    except ProgrammingError:  # PostgreSQL replaces no function that returned other columns.
        _install(kept.drop, text, using=using)


def _install(*statements: str, using: str) -> None:
    """
    Execute statements in one transaction: at no time is something missing that was there before.

    Where several processes run ``migrate``, as when several containers of a site start, they install one after the other. If
    two replaced the same function, PostgreSQL would refuse the second.
    """
    dialect = dialect_of(using)
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        if dialect.has_trigger_functions:
            cursor.execute(dialect.sql("lock_install"))
        for statement in statements:
            cursor.execute(statement)


def missing_triggers(using: str) -> list[str]:
    """Names of triggers, and of functions that statements call, that are missing though their tables exist."""
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("triggers"))
        return missing_among({name for [name] in cursor.fetchall()}, using=using)


def missing_among(there: Collection[str], *, using: str) -> list[str]:
    """The same, from the names that the statement ``triggers`` has returned."""
    has_functions = dialect_of(using).has_trigger_functions
    due = [name for name, table in CALLED.items() if has_functions and table in there]
    missing = [name for name in (*_possible(using, there), *due) if f"timeline_{name}" not in there]
    kept = [name for name in KEPT if has_functions and f"timeline_{name}" not in there]
    return missing + kept if kept and _has_migration_of_kept(using) else missing


def _has_migration_of_kept(using: str) -> bool:
    applied = MigrationRecorder(connections[using]).applied_migrations()
    return ("timeline", kept_statements.SINCE) in applied


def _possible(using: str, tables: Collection[str]) -> list[str]:
    """The triggers for which all tables exist."""
    wanted = triggers_of(using).items()
    return [name for name, table in wanted if table in tables and NEEDED.get(name, table) in tables]
