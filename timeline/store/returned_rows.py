"""Read the results of raw statements about tasks and runs, with the values that the model has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, Final, TypeVar
from uuid import UUID

from django.conf import settings
from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateField, DateTimeField, Field, JSONField, Model, QuerySet, UUIDField
from django.db.models.base import ModelState
from django.db.models.signals import post_init, pre_init

from timeline.dialects import Among, is_by_psycopg3, target_of
from timeline.models.columns import is_made_plainly
from timeline.models.entities import Entities, EntityRef, by_model
from timeline.models.task import ScheduledTask
from timeline.store.insert import fields_of

RawRow = dict[str, Any]
Convert = Callable[[Any, Any, BaseDatabaseWrapper], Any]

M = TypeVar("M", bound=Model)

FIELDS = fields_of(ScheduledTask)
COLUMNS = ", ".join(str(field.column) for field in FIELDS.values())
MANY: Final = 10  # For fewer entities, asking whether a model is plain takes longer than it saves.


@contextmanager
def cursor_for_rows(connection: BaseDatabaseWrapper) -> Iterator[Any]:
    """Open a cursor for many rows: psycopg reads their times, in C, since Django would do it in Python."""
    with connection.cursor() as cursor:
        if is_by_psycopg3(connection):
            psycopg: Any = connection.Database  # type: ignore[attr-defined]
            times = psycopg.adapters.types["timestamptz"].oid
            quick = psycopg.adapters.get_loader(times, psycopg.pq.Format.TEXT)
            cursor.cursor.adapters.register_loader(times, quick)
        yield cursor


def rows_of(
    cursor: Any, connection: BaseDatabaseWrapper, names: tuple[str, ...] = (), *, model: type[Model] = ScheduledTask
) -> dict[UUID, RawRow]:
    """Read the rows of a cursor: id → row, with values by column. If the cursor has to tell the ``names``, it is slower."""
    fetched = cursor.fetchall()
    names = names or tuple(column[0] for column in cursor.description)  # Sent ahead, it has none before its rows come.
    converters = _converters(model, names, connection.alias)
    rows: dict[UUID, RawRow] = {}
    for values in fetched:
        row = dict(zip(names, values, strict=True))
        for name, convert, column in converters:
            row[name] = convert(row[name], column, connection)
        rows[row["id"]] = row
    return rows


def values_of(
    cursor: Any, connection: BaseDatabaseWrapper, names: tuple[str, ...], *, model: type[Model] = ScheduledTask
) -> Sequence[Sequence[Any]]:
    """Read the rows of a cursor as values in the order of these columns, in half the time of ``rows_of``."""
    rows: Sequence[Sequence[Any]] = cursor.fetchall()
    converters = [
        (names.index(name), convert, column) for name, convert, column in _converters(model, names, connection.alias)
    ]
    if not converters:
        return rows
    values = list(map(list, rows))
    for row in values:
        for place, convert, column in converters:
            row[place] = convert(row[place], column, connection)
    return values


def row_of_json(text: str, model: type[Model]) -> RawRow:
    """Read a whole row that PostgreSQL has written as JSON: name of a column → value as the model has it."""
    names, of_columns, readers = _whole(model)
    row = dict(zip(names, of_columns(json.loads(text)), strict=True))
    for name, read in readers:
        if (value := row[name]) is not None:
            row[name] = read(value)
    return row


def row_read(said: Mapping[str, Any], model: type[Model], names: frozenset[str]) -> RawRow:
    """Read columns of a row from JSON: name of a column → value as the model has it."""
    return {
        name: said[column] if read is None or said[column] is None else read(said[column])
        for name, column, read in _readers_of(model, names)
    }


@lru_cache
def _whole(model: type[Model]) -> tuple[list[str], itemgetter[Any], list[tuple[str, Callable[[str], Any]]]]:
    """All names of columns, a function that takes their values from JSON, and readers for those that JSON has as text."""
    readers = _readers(model)
    reads = [(name, read) for name, _column, read in readers if read is not None]
    return [name for name, *_rest in readers], itemgetter(*(column for _name, column, _read in readers)), reads


@lru_cache
def _readers_of(model: type[Model], names: frozenset[str]) -> list[tuple[str, str, Callable[[str], Any] | None]]:
    return [known for known in _readers(model) if known[0] in names]


@lru_cache
def _readers(model: type[Model]) -> list[tuple[str, str, Callable[[str], Any] | None]]:
    """For each column: its ``attname``, its name in the database, and the reader of its value if JSON has it as text."""
    return [
        (name, str(field.column), READ_FROM_JSON.get(type(target_of(field))))
        for name, field in fields_of(model).items()
    ]


def _in_utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


READ_FROM_JSON: Final[dict[type[Field[Any, Any]], Callable[[str], Any]]] = {
    UUIDField: UUID,
    DateTimeField: _in_utc,
    DateField: date.fromisoformat,
}


def read_models(asked: QuerySet[M]) -> list[M]:
    """Make the instances of a query without joins, in a third of Django's time. They also have what ``extra`` selects."""
    model, using, more = asked.model, asked.db, tuple(asked.query.extra)
    connection = connections[using]
    try:
        sql, parameters = asked.query.get_compiler(using).as_sql()
    except EmptyResultSet:
        return []
    with cursor_for_rows(connection) as cursor:
        cursor.execute(sql, parameters)
        return as_models(rows_of(cursor, connection, (*more, *fields_of(model)), model=model).values(), model, using)


def read_entities(refs: Iterable[EntityRef], *, using: str) -> Entities:
    """Read entities as ``load_entities`` does; many in half the time, if an instance of the model is just its columns."""
    return by_model(refs, partial(_entities, using=using), using=using)


def _entities(model: type[Model], keys: list[Any], using: str) -> Iterable[Model]:
    asked = model._base_manager.using(using).filter(Among(keys))
    if len(keys) < MANY or not settings.USE_TZ or not is_made_plainly(model):
        return asked
    connection, columns = connections[using], tuple(fields_of(model))
    sql, parameters = asked.query.get_compiler(using).as_sql()
    with cursor_for_rows(connection) as cursor:
        cursor.execute(sql, parameters)
        rows = values_of(cursor, connection, columns, model=model)
    return [_as_model(dict(zip(columns, row, strict=True)), model, using) for row in rows]


def as_tasks(rows: Iterable[RawRow], using: str) -> list[ScheduledTask]:
    """Make the instances of tasks that were read with ``COLUMNS``."""
    return as_models(rows, ScheduledTask, using)


def as_models(rows: Iterable[RawRow], model: type[M], using: str) -> list[M]:
    """Make instances of whole rows, in a third of Django's time. If somebody listens to its signals, Django makes them."""
    if pre_init.has_listeners(model) or post_init.has_listeners(model):
        return [_made_by_django(row, model, using) for row in rows]
    return [_as_model(row, model, using) for row in rows]


def _made_by_django(row: RawRow, model: type[M], using: str) -> M:
    """Let Django make an instance of its columns, which it takes in the order of the model, and then add what else was read."""
    names = fields_of(model)
    made = model.from_db(using, list(names), [row[name] for name in names])
    made.__dict__.update({name: value for name, value in row.items() if name not in names})
    return made


def _as_model(row: RawRow, model: type[M], using: str) -> M:
    made = model.__new__(model)
    made.__dict__.update(row)
    made._state = state = ModelState()
    state.db, state.adding = using, False
    return made


@lru_cache
def _converters(model: type[Model], names: tuple[str, ...], using: str) -> list[tuple[str, Convert, Any]]:
    """Converters that Django applies to the values of these columns: name, function, and the column that it is called with."""
    connection = connections[using]
    fields = fields_of(model)
    columns = [(name, fields[name].get_col(model._meta.db_table)) for name in names if name in fields]
    return [
        (name, _unless_empty(convert) if _is_plain_json(fields[name]) else convert, column)
        for name, column in columns
        for convert in (*connection.ops.get_db_converters(column), *column.get_db_converters(connection))
    ]


def _is_plain_json(field: Field[Any, Any]) -> bool:
    return isinstance(field, JSONField) and field.decoder is None


def _unless_empty(convert: Convert) -> Convert:
    """Skip the JSON parser if the value is {}, as in most rows."""
    return lambda value, column, connection: {} if value == "{}" else convert(value, column, connection)
