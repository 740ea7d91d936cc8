"""Insert one task in one trip: lock its entity, read story time and insert the row."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from django.db import connections

from timeline.dialects import dialect_of
from timeline.lifecycle import State
from timeline.models.statements import element_type, narrowed
from timeline.models.task import ScheduledTask
from timeline.store.entity_locks import lock_of
from timeline.store.inserting import as_stored, fields_of, writers_of

SET_HERE: Final = frozenset({"state", "created_at"})


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
    fields, write = fields_of(ScheduledTask), writers_of(ScheduledTask, using)
    given = {name: value for name in fields.keys() - SET_HERE if (value := getattr(task, name)) is not None}
    parameters = {name: write[name](value) for name, value in given.items()}
    with connection.cursor() as cursor:
        cursor.execute(_statement(sql, tuple(sorted(given)), using), {**parameters, "keys": keys, "now": now})
        found = cursor.fetchone()
    if found is None:
        return False
    task.state, task.created_at = State(found[0]), found[1].astimezone(UTC)
    as_stored(task, using=using)
    return True


@lru_cache(maxsize=256)
def _statement(lock: str, names: tuple[str, ...], using: str) -> str:
    fields = fields_of(ScheduledTask)
    columns = ", ".join(f'"{fields[name].column}"' for name in names)
    values = ", ".join(f"%({name})s::{element_type(fields[name], connections[using])}" for name in names)
    sql = narrowed(dialect_of(using).sql("schedule"), names)
    for word, text in {"lock": lock, "columns": columns, "values": values}.items():
        sql = sql.replace(f"{{{word}}}", text)
    return sql
