"""Insert rows whose place may be taken: a duplicate is left out and breaks nobody's transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache, partial
from itertools import repeat
from operator import is_
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import UUID

from django.db import connections
from django.db.models import DateTimeField, Field, JSONField, Model, UUIDField

from timeline.models.statements import as_array, element_type

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

Row = TypeVar("Row", bound=Model)


def insert_missing(rows: Sequence[Row], *, using: str) -> list[Row]:
    """
    Insert rows with ``INSERT … ON CONFLICT DO NOTHING RETURNING``: any number in one statement.

    Django's ``bulk_create(ignore_conflicts=True)`` does not tell which rows it left out, and on SQLite it leaves out those that
    a CHECK refuses, too: here only a taken place is passed over.

    Args:
        rows: New ones of one model, each with its key.
        using: Database alias.

    Returns:
        Those inserted, in the order given. The others met a row that is there already, by a unique constraint.
    """
    if not rows:
        return []
    names = [field.attname for field in rows[0]._meta.concrete_fields]
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    inserted = Insertion(type(rows[0]), columns, using=using).send().inserted()
    return [as_stored(row, using=using) for row in rows if row.pk in inserted]


def as_stored(row: Row, *, using: str) -> Row:
    """Mark a row as one that the database has."""
    row._state.adding, row._state.db = False, using
    return row


class Insertion:
    """
    Rows that are not worth an instance each, inserted as by ``insert_missing``: in steps, so that Python can prepare what
    comes next while the database does what was sent (``pipelining``).

    What all rows have in common is a parameter of its own, the rest an array a column. So the text of the statement does
    not grow with the rows, and a database reads it many times faster than the VALUES of each row.

    Args:
        model: One whose key is a UUID.
        columns: Name of a column (``attname``) → value of each row; none: there are no rows. UUIDs may be text. What is left
            out has its default.
        taken: Whether a place may be taken. To look for that is a fifth of the work; where it cannot be, it is an error.
        using: Database alias.
    """

    def __init__(
        self, model: type[Model], columns: Mapping[str, Sequence[Any]], *, taken: bool = True, using: str
    ) -> None:
        self._model, self._taken, self._using = model, taken, using
        self._keys: Sequence[UUID] = columns.get(model._meta.pk.attname, ())
        if not self._keys:
            return
        connection = connections[using]
        common = {name: values[0] for name, values in columns.items() if all(map(is_, values, repeat(values[0])))}
        apart = tuple(name for name in columns if name not in common)
        common |= _defaults(model, tuple(columns))
        self._sql = _statement(model, tuple(common), apart, taken, using)
        parameters = [_written([value], _writer(model, name, connection))[0] for name, value in common.items()]
        arrays = [_written(columns[name], _writer(model, name, connection)) for name in apart]
        if connection.vendor == "postgresql":
            parameters += [as_array(array) for array in arrays]
        elif arrays:
            parameters.append(json.dumps(list(zip(*arrays, strict=True))))
        self._parameters = parameters

    def send(self) -> Self:
        """Execute the statement, or send it on its way."""
        if self._keys:
            self._cursor = connections[self._using].cursor()
            self._cursor.execute(self._sql, self._parameters)
        return self

    def inserted(self) -> set[UUID]:
        """Keys of those inserted."""
        if not self._keys or not self._taken:
            return set(self._keys)
        with self._cursor as cursor:
            first = cursor.fetchone()
            if cursor.rowcount == len(self._keys):  # SQLite counts only what has been fetched.
                return set(self._keys)
            found = [first, *cursor.fetchall()] if first else []
        return {self._model._meta.pk.to_python(key) for [key] in found}


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn rows, which have the same names each, into columns."""
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


@lru_cache(maxsize=256)
def _defaults(model: type[Model], given: tuple[str, ...]) -> dict[str, Any]:
    """Columns that are not given but have a default. The others are NULL."""
    left_out = [field for field in model._meta.concrete_fields if field.attname not in given and field.has_default()]
    return {field.attname: field.get_default() for field in left_out}


@cache
def _fields(model: type[Model]) -> dict[str, Field[Any, Any]]:
    return {field.attname: field for field in model._meta.concrete_fields}


@lru_cache(maxsize=256)
def _statement(model: type[Model], common: tuple[str, ...], apart: tuple[str, ...], taken: bool, using: str) -> str:
    """Write the statement: values reach it as parameters only, names come from the model."""
    meta, vendor = model._meta, connections[using].vendor
    columns = ", ".join(f'"{_fields(model)[name].column}"' for name in (*common, *apart))
    if vendor == "postgresql":
        types = {name: element_type(_fields(model)[name], connections[using]) for name in (*common, *apart)}
        values = [f"%s::{types[name]}" for name in common] + [f'new."{name}"' for name in apart]
        arrays = ", ".join(f"%s::{types[name]}[]" for name in apart)
        names = ", ".join(f'"{name}"' for name in apart)
        source = f"FROM unnest({arrays}) AS new({names})" if apart else ""
    else:
        values = ["%s" for _name in common]
        values += [f"json_extract(new.value, '$[{position}]')" for position in range(len(apart))]
        source = "FROM json_each(%s) AS new" if apart else ""
    insert = f'INSERT INTO "{meta.db_table}" ({columns}) SELECT {", ".join(values)} {source} WHERE true'
    return f'{insert} ON CONFLICT DO NOTHING RETURNING "{meta.pk.column}"' if taken else insert


def _writer(model: type[Model], name: str, connection: BaseDatabaseWrapper) -> Callable[[Any], str | None]:
    """How to write a value of a column as the text that the database reads it from."""
    field = getattr(_fields(model)[name], "target_field", _fields(model)[name])
    if isinstance(field, UUIDField):
        return _digits
    if isinstance(field, JSONField):
        return partial(json.dumps, cls=field.encoder)
    if isinstance(field, DateTimeField):
        # Many rows have the same times.
        return cache(
            datetime.isoformat if connection.vendor == "postgresql" else connection.ops.adapt_datetimefield_value
        )
    return str


def _digits(key: UUID | str) -> str:
    return key if isinstance(key, str) else key.hex


def _written(values: Sequence[Any], write: Callable[[Any], str | None]) -> list[str | None]:
    return [None if value is None else write(value) for value in values]
