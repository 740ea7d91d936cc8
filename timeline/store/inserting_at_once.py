"""Insert one task in one trip: lock its entity, read story time and insert the row."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from django.db import connections

from timeline.dialects import dialect_of
from timeline.lifecycle import State
from timeline.models.statements import element_type, narrowed
from timeline.models.task import ScheduledTask
from timeline.store.entity_locks import lock_of
from timeline.store.inserting import as_stored, fields_of, writers_of

SET_HERE: Final = frozenset({"state", "created_at"})
NAMES: Final = tuple(name for name in fields_of(ScheduledTask) if name not in SET_HERE)
# Half of the columns of most tasks have nothing in them: written so, that is no parameter.
NOTHING: Final = {str: "''", int: "0", bool: "false"}


def insert_at_once(task: ScheduledTask, *, now: datetime | None, using: str) -> bool:
    """
    Insert a task at the moment when its entity is locked: in the caller's transaction, or in one of the statement's own.

    Args:
        task: A new task. Its state and the time of its creation are set here.
        now: Story time; None: the time of the database once it has the lock.
        using: Database alias.

    Returns:
        Whether the task was inserted. If not, nothing was written: the entity or the cause does not exist, there is such a task
        already, or one statement is not enough, as on SQLite. The caller then uses several statements, and these tell the
        reason.
    """
    connection = connections[using]
    lock = lock_of(task.entity_ref, using)
    if lock is None or not (connection.in_atomic_block or connection.get_autocommit()):
        return False
    sql, keys = lock
    write, values = writers_of(ScheduledTask, using), task.__dict__
    parameters: dict[str, Any] = {"keys": keys, "now": now}
    nothing = []
    for name in NAMES:
        value = values[name]
        if value is None:
            continue
        if value or type(value) not in NOTHING:
            parameters[name] = write[name](value)
        else:
            nothing.append((name, type(value)))
    with connection.cursor() as cursor:
        cursor.execute(_statement(sql, tuple(parameters), tuple(nothing), using), parameters)
        found = cursor.fetchone()
    if found is None:
        return False
    task.state, task.created_at = State(found[0]), found[1].astimezone(UTC)
    as_stored(task, using=using)
    return True


@lru_cache(maxsize=256)
def _statement(lock: str, parameters: tuple[str, ...], nothing: tuple[tuple[str, type], ...], using: str) -> str:
    """
    Make the text of the statement.

    Args:
        lock: The part that locks the entity.
        parameters: The names of the parameters: some are columns.
        nothing: The columns that have nothing in them, each with the type of that.
        using: Database alias.
    """
    fields = fields_of(ScheduledTask)
    values = {
        name: f"%({name})s::{element_type(fields[name], connections[using])}" for name in parameters if name in fields
    }
    values |= {name: NOTHING[kind] for name, kind in nothing}
    sql = narrowed(dialect_of(using).sql("schedule"), parameters)
    columns = ", ".join(f'"{fields[name].column}"' for name in values)
    for word, text in {"lock": lock, "columns": columns, "values": ", ".join(values.values())}.items():
        sql = sql.replace(f"{{{word}}}", text)
    return sql
