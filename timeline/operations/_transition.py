"""The one way a task changes: any number of rows in one guarded UPDATE, their log entries in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from timeline.models import ScheduledTask
from timeline.models.statements import statement
from timeline.operations._changes import MAX_ACTOR, MAX_REASON, Write, as_parameters

__all__ = ["MAX_ACTOR", "MAX_REASON", "Write", "apply"]

Row = dict[str, Any]


def apply(writes: Sequence[Write], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Write the changes and their log entries.

    Args:
        writes: Any number, one a task.
        now: Story time, for the log and for started and finished.
        using: Database alias.

    Returns:
        The given task objects whose guard held, brought up to date, in the order given. One that is missing was changed
        by somebody else since it was read; nothing was written for it.

    Raises:
        TransitionNotAllowed: if the lifecycle has no such move; nothing is written then.
    """
    if not writes:
        return []
    parameters = as_parameters(writes, now=now, using=using)
    changed = _execute(parameters, connections[using])
    done = [write.task for write in writes if write.task.pk in changed]
    for task in done:
        for attname, value in changed[task.pk].items():
            setattr(task, attname, value)
    return done


def _execute(parameters: dict[str, object], connection: BaseDatabaseWrapper) -> dict[UUID, Row]:
    """Make the changes; give what became of the rows. PostgreSQL logs in the same statement, SQLite in a second one."""
    sql = statement("transition", connection.vendor)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return _rows(cursor, connection)
    with transaction.atomic(using=connection.alias, savepoint=False), connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        changed = _rows(cursor, connection)
        written = [change for change in json.loads(str(parameters["changes"])) if UUID(change["id"]) in changed]
        cursor.execute(statement("log", connection.vendor), {"changes": json.dumps(written), "at": parameters["at"]})
    return changed


def _rows(cursor: Any, connection: BaseDatabaseWrapper) -> dict[UUID, Row]:
    """Read what a statement returns of tasks: id → value by column, as the model has them."""
    names = [column[0] for column in cursor.description]
    converters = _converters(names, connection)
    rows: dict[UUID, Row] = {}
    for values in cursor.fetchall():
        row = dict(zip(names, values, strict=True))
        for name, convert in converters:
            row[name] = convert(row[name])
        rows[row["id"]] = row
    return rows


def _converters(names: Iterable[str], connection: BaseDatabaseWrapper) -> list[tuple[str, Callable[[Any], Any]]]:
    """What Django does to values of these columns as they come from the database."""
    found: list[tuple[str, Callable[[Any], Any]]] = []
    for name in names:
        column = ScheduledTask._meta.get_field(name).get_col(ScheduledTask._meta.db_table)  # type: ignore[union-attr]
        for convert in (*connection.ops.get_db_converters(column), *column.get_db_converters(connection)):
            found.append((name, lambda value, convert=convert, column=column: convert(value, column, connection)))
    return found
