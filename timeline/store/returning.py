"""Read what raw statements return of tasks, as the model has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from timeline.dialects import is_by_psycopg3
from timeline.models.task import ScheduledTask

RawRow = dict[str, Any]
Convert = Callable[[Any], Any]

FIELDS = {field.attname: field for field in ScheduledTask._meta.concrete_fields}
_NAMES = list(FIELDS)
COLUMNS = ", ".join(str(field.column) for field in FIELDS.values())


@contextmanager
def cursor_for_rows(connection: BaseDatabaseWrapper) -> Iterator[Any]:
    """Open a cursor whose rows are many: it reads times as psycopg does it in C, where Django does it in Python."""
    with connection.cursor() as cursor:
        if is_by_psycopg3(connection):
            psycopg: Any = connection.Database  # type: ignore[attr-defined]
            times = psycopg.adapters.types["timestamptz"].oid
            quick = psycopg.adapters.get_loader(times, psycopg.pq.Format.TEXT)
            cursor.cursor.adapters.register_loader(times, quick)
        yield cursor


def rows_of(cursor: Any, connection: BaseDatabaseWrapper, names: tuple[str, ...] = ()) -> dict[UUID, RawRow]:
    """
    Read the rows a cursor returns: id → value by name of column. In their order.

    Args:
        cursor: Where the statement was executed.
        connection: Its own.
        names: Of the columns; left out: as the cursor says them, which takes longer.
    """
    names = names or tuple(column[0] for column in cursor.description)
    converters = _converters(names, connection.alias)
    rows: dict[UUID, RawRow] = {}
    for values in cursor.fetchall():
        row = dict(zip(names, values, strict=True))
        for name, convert in converters:
            row[name] = convert(row[name])
        rows[row["id"]] = row
    return rows


def as_task(row: RawRow, using: str) -> ScheduledTask:
    """Make the model of a row that was read with ``COLUMNS``."""
    return ScheduledTask.from_db(using, _NAMES, list(row.values()))


@lru_cache
def _converters(names: Iterable[str], using: str) -> list[tuple[str, Convert]]:
    """What Django does to values of these columns as they come from the database."""
    connection = connections[using]
    found: list[tuple[str, Convert]] = []
    for name in names:
        column = FIELDS[name].get_col(ScheduledTask._meta.db_table)
        for convert in (*connection.ops.get_db_converters(column), *column.get_db_converters(connection)):
            found.append((name, _converter(convert, column, using)))
    return found


def _converter(convert: Callable[..., Any], column: Any, using: str) -> Convert:
    return lambda value: convert(value, column, connections[using])
