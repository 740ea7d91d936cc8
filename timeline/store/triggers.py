"""
Install the triggers that guard the lifecycle and rows that others refer to, and the functions that statements call. They are
installed after each run of migrations, not by a migration: on SQLite, a table that a migration makes anew loses them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from django.db import ProgrammingError, connections, transaction

from timeline.dialects import dialect_of
from timeline.hooks import hooks
from timeline.models import Event, LogEntry, RunEntry, ScheduledTask, TimelineRun
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
# Functions that statements call, each made of a whole statement. Features have more, see ``Hooks.functions``.
KEPT: Final = {kept.name: kept for kept in kept_statements.KEPT}
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
    if dialect.has_trigger_functions:
        _install_functions(using)
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


def _install_functions(using: str) -> None:
    for name in FUNCTIONS:
        _install(_text_of(name, using), using=using)
    for name, composed in hooks().functions:
        _install(_text_of(f"function_{name}", using) if composed is None else composed(using), using=using)
    for name in OWN_FUNCTIONS.values():
        _install(_text_of(name, using), using=using)


def _text_of(name: str, using: str) -> str:
    """The text of a function. The table that a guard reads is named with its schema."""
    text = dialect_of(using).sql(name)
    if "{schema}" not in text:
        return text
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("schema_of_runs"))
        schema, as_text = cursor.fetchone()
    return text.replace("{schema}", schema).replace("{schema_text}", as_text)


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
    called = [name for name, _composed in hooks().functions]
    functions = (*called, *KEPT) if dialect_of(using).has_trigger_functions else ()
    return [name for name in (*triggers_of(using), *functions) if f"timeline_{name}" not in there]
