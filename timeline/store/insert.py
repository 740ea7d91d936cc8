"""Insert rows. If a unique constraint finds a duplicate, that row is left out, and the transaction goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache, partial
from itertools import chain, repeat
from operator import attrgetter, is_, itemgetter
from typing import Any, NamedTuple, Self, TypeVar
from uuid import UUID

from django.db import connections
from django.db.models import BooleanField, CharField, DateTimeField, Field, JSONField, Model, TextField, UUIDField
from django.db.models.base import ModelState
from django.db.models.signals import post_init, pre_init

from timeline.dialects import as_array, dialect_of, element_type, target_of
from timeline.payloads import as_text

Inserted = TypeVar("Inserted", bound=Model)


def insert_missing(rows: Sequence[Inserted], *, using: str) -> list[Inserted]:
    """
    Insert rows of one model, each with its primary key, in one statement. Gives those that were inserted, in their order.
    Django's ``bulk_create(ignore_conflicts=True)`` does not tell which rows it left out. On SQLite it also leaves out what a
    CHECK refuses; here only a taken place is passed over.
    """
    return send_missing(rows, using=using)()


def send_missing(rows: Sequence[Inserted], *, using: str) -> Callable[[], list[Inserted]]:
    """Insert rows, or send them without waiting (``pipelining``). Call the result to get what ``insert_missing`` returns."""
    if not rows:
        return list
    names = tuple(fields_of(type(rows[0])))
    values = map(itemgetter(*names), map(attrgetter("__dict__"), rows))
    columns = dict(zip(names, zip(*values, strict=True), strict=True))
    insertion = Insertion(type(rows[0]), columns, using=using).send()

    def done() -> list[Inserted]:
        inserted = insertion.inserted()
        return [as_stored(row, using=using) for row in rows if row.pk in inserted]

    return done


def new_row(model: type[Inserted], columns: Mapping[str, Any]) -> Inserted:
    """
    Make an instance of a row that is not stored yet, much faster than Django. Columns that are not given have their defaults.
    If somebody listens to Django's signals of new instances, Django makes it.
    """
    if pre_init.has_listeners(model) or post_init.has_listeners(model):
        return model(**columns)
    always, made_anew = _blank(model)
    row = model.__new__(model)
    row._state = ModelState()
    row.__dict__.update(always)
    row.__dict__.update({name: make() for name, make in made_anew.items() if name not in columns})
    row.__dict__.update(columns)
    return row


@cache
def _blank(model: type[Model]) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
    """Defaults of all columns: fixed values, and functions that make a value for each row."""
    fields = fields_of(model)
    made_anew = {
        name: field.default for name, field in fields.items() if field.has_default() and callable(field.default)
    }
    return {name: None if name in made_anew else field.get_default() for name, field in fields.items()}, made_anew


def as_stored(row: Inserted, *, using: str) -> Inserted:
    """Mark a row as one that the database has."""
    row._state.adding, row._state.db = False, using
    return row


class Grid(NamedTuple):
    """
    Columns of rows in groups with the same members: a row for each pair of group and member. Each value is sent only once.
    """

    groups: Mapping[str, Sequence[Any]]
    members: Mapping[str, Sequence[Any]]

    @property
    def size(self) -> int:
        """How many members a group has."""
        return len(next(iter(self.members.values())))

    def columns(self) -> dict[str, list[Any]]:
        """Name of a column → value of each row, group by group."""
        size, count = self.size, len(next(iter(self.groups.values())))
        columns = {name: [value for value in values for _member in range(size)] for name, values in self.groups.items()}
        return columns | {name: [*values] * count for name, values in self.members.items()}


class Insertion:
    """
    Inserts rows as ``insert_missing`` does, without instances. Between ``send`` and ``inserted``, Python can prepare the next
    statement (``pipelining``). A shared value is one parameter, any other column one array: the database reads this much faster
    than VALUES.

    Args:
        model: A model whose primary key is a UUID.
        columns: Column (``attname``) → a value for each row; empty: no rows. UUIDs may be text. Others have their defaults.
        grid: Further columns, for rows in groups. ``columns`` has only the primary keys then, group by group.
        under: A column that refers to another row. If that row is not there, this one is left out.
        taken: Whether duplicates are left out, which is a fifth of the work. If False, a duplicate is an error.
        asks: A condition in SQL, evaluated for each row; empty: none. See ``met``.
    """

    def __init__(
        self,
        model: type[Model],
        columns: Mapping[str, Sequence[Any]],
        *,
        grid: Grid | None = None,
        under: str = "",
        taken: bool = True,
        asks: str = "",
        using: str,
    ) -> None:
        self.asks, self._met = asks, None if asks else set[UUID]()
        self.table, self.key = model._meta.db_table, model._meta.pk
        self.taken, self._using = taken, using
        self.found: set[UUID] | None = None
        self.keys: Sequence[UUID] = columns.get(self.key.attname, ())
        if not self.keys:
            return
        has_arrays = dialect_of(using).has_arrays
        if grid is not None and not has_arrays:
            columns, grid = {**columns, **grid.columns()}, None
        parts = [columns, *(grid or ())]
        common = {
            name: values[0]
            for part in parts
            for name, values in part.items()
            if name != under and all(map(is_, values, repeat(values[0])))
        }
        apart = tuple(tuple(name for name in part if name not in common) for part in parts)
        common |= _defaults(model, tuple(chain(*parts)))
        self.sql = _statement(model, tuple(common), apart, under, taken, asks, using)
        write = writers_of(model, using)
        parameters = [None if value is None else write[name](value) for name, value in common.items()]
        arrays = [_texts(part[name], write[name]) for part, names in zip(parts, apart, strict=True) for name in names]
        if has_arrays:
            parameters += [as_array(array) for array in arrays]
            if grid is not None:
                parameters.insert(len(common) + 1, str(grid.size))
        elif arrays:
            parameters.append(json.dumps(list(zip(*arrays, strict=True))))
        self.parameters: list[str | None] = parameters

    def send(self) -> Self:
        """Execute the statement, or send it without waiting."""
        if self.keys:
            self._cursor = connections[self._using].cursor()
            self._cursor.execute(self.sql, self.parameters)
            if dialect_of(self._using).has_one_writer and (self.taken or self.asks):
                self.found = self._fetched()  # SQLite rolls back no savepoint while a statement is not read to its end.
        return self

    def inserted(self) -> set[UUID]:
        """The keys of the inserted rows. If there can be no duplicates, these are all, and nobody waits for the database."""
        if self.found is None:
            self.found = self._fetched() if self.keys and self.taken else set(self.keys)
        return self.found

    @property
    def met(self) -> set[UUID]:
        """The keys of the inserted rows for which the condition is true."""
        if self._met is None:
            self._met = set()
            if self.keys:
                self._fetched()
        return self._met

    def _fetched(self) -> set[UUID]:
        with self._cursor as cursor:
            first = cursor.fetchone()
            if cursor.rowcount == len(self.keys) and not self.asks:  # SQLite counts only what has been fetched.
                return set(self.keys)
            return self.take([first, *cursor.fetchall()] if first else [])

    def take(self, rows: Iterable[Sequence[Any]]) -> set[UUID]:
        """Read the result of the statement: the key of each inserted row, and whether the condition is true for it."""
        found = [(self.key.to_python(row[0]), row[-1]) for row in rows]
        if self.asks:
            self._met = {key for key, is_so in found if is_so}
        return {key for key, _is_so in found}


def insert_in_turn(insertions: Iterable[Insertion], *, using: str) -> None:
    """Insert rows of several tables in the order given, so that ``under`` works: on PostgreSQL by one statement in one trip."""
    several = [insertion for insertion in insertions if insertion.keys]
    if len(several) < 2 or not dialect_of(using).has_set_statements:
        for insertion in several:
            insertion.send().inserted()
        return
    # In this statement a table's name stands for its new rows: the table itself does not show them before the end.
    written = ", ".join(f'"{insertion.table}" AS ({insertion.sql})' for insertion in several)
    told = [insertion for insertion in several if insertion.taken or insertion.asks]
    keys = " UNION ALL ".join(
        f'SELECT "{one.key.column}", {"asked" if one.asks else "false"} FROM "{one.table}"'  # noqa: S608 (the model's names)
        for one in told
    )
    with connections[using].cursor() as cursor:
        cursor.execute(f"WITH {written} {keys or 'SELECT WHERE false'}", [*chain(*(one.parameters for one in several))])
        found = dict(cursor.fetchall())
    for insertion in told:
        insertion.found = insertion.take((key, found[key]) for key in found.keys() & set(insertion.keys))


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn rows, which all have the same names, into columns."""
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


@lru_cache(maxsize=256)
def _defaults(model: type[Model], given: tuple[str, ...]) -> dict[str, Any]:
    """The columns that are not given and have a default. Other columns that are not given are NULL."""
    left_out = [field for field in model._meta.concrete_fields if field.attname not in given and field.has_default()]
    return {field.attname: field.get_default() for field in left_out}


@cache
def fields_of(model: type[Model]) -> dict[str, Field[Any, Any]]:
    """Name of a column (``attname``) → its field."""
    return {field.attname: field for field in model._meta.concrete_fields}


@lru_cache(maxsize=256)
def _statement(
    model: type[Model],
    common: tuple[str, ...],
    parts: tuple[tuple[str, ...], ...],
    under: str,
    taken: bool,
    asks: str,
    using: str,
) -> str:
    """Make its text. ``parts`` are columns with an array: one tuple, or for a grid three: the key, the groups, the members."""
    meta, apart = model._meta, tuple(chain(*parts))
    columns = ", ".join(f'"{fields_of(model)[name].column}"' for name in (*common, *apart))
    if dialect_of(using).has_arrays:
        types = {name: element_type(fields_of(model)[name], connections[using]) for name in (*common, *apart)}
        values = [f"%s::{types[name]}" for name in common]
        if len(parts) == 1:
            values += [f'new."{name}"' for name in apart]
            source = f"FROM {_unnested('new', apart, types)}" if apart else ""
        else:
            [key], groups, members = parts
            values.append(f"(%s::{types[key]}[])[(its_group.number - 1) * %s::int + member.number]")
            values += [f'its_group."{name}"' for name in groups] + [f'member."{name}"' for name in members]
            source = f"FROM {_unnested('its_group', groups, types)} CROSS JOIN {_unnested('member', members, types)}"
    else:
        values = ["%s" for _name in common]
        values += [f"json_extract(new.value, '$[{position}]')" for position in range(len(apart))]
        source = "FROM json_each(%s) AS new" if apart else ""
    insert = f'INSERT INTO "{meta.db_table}" ({columns}) SELECT {", ".join(values)} {source} WHERE true'
    if under:
        target = target_of(fields_of(model)[under])
        keys = f'"{target.column}" FROM "{target.model._meta.db_table}"'
        insert += f" AND {values[len(common) + apart.index(under)]} IN (SELECT {keys})"
    insert += " ON CONFLICT DO NOTHING" if taken else ""
    if not taken and not asks:
        return insert
    return f'{insert} RETURNING "{meta.pk.column}"' + (f", {asks} AS asked" if asks else "")


def _unnested(called: str, names: Sequence[str], types: Mapping[str, str]) -> str:
    """An item of FROM that makes rows of arrays. The rows of a grid are numbered."""
    arrays = ", ".join(f"%s::{types[name]}[]" for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    if called == "new":
        return f"unnest({arrays}) AS new({columns})"
    return f"unnest({arrays}) WITH ORDINALITY AS {called}({columns}, number)"


@cache
def writers_of(model: type[Model], using: str) -> dict[str, Callable[[Any], str]]:
    """Name of a column → how to write a value as the text that the database reads it from."""
    return {name: _writer(target_of(field), using) for name, field in fields_of(model).items()}


def _writer(field: Field[Any, Any], using: str) -> Callable[[Any], str]:
    if isinstance(field, UUIDField):
        return _digits
    if isinstance(field, JSONField):
        return partial(json.dumps, cls=field.encoder)
    if isinstance(field, DateTimeField):
        # Many rows have the same times. All are in UTC: elsewhere, two an hour apart count as equal when clocks go back.
        return lru_cache(datetime.isoformat if dialect_of(using).has_time_types else partial(_adapted, using))
    if isinstance(field, CharField | TextField):
        return _as_text
    return _as_digit if isinstance(field, BooleanField) else str


def _texts(values: Sequence[Any], write: Callable[[Any], str]) -> Sequence[str | None]:
    """The values of a column as text. Most columns have text already."""
    if (write is _as_text or write is _digits) and set(map(type, values)) == {str}:
        return values
    return [None if value is None else write(value) for value in values]


def _as_text(value: object) -> str:
    return as_text(value) if isinstance(value, str) else str(value)


def _adapted(using: str, value: datetime) -> str:
    return str(connections[using].ops.adapt_datetimefield_value(value))


def _as_digit(value: bool) -> str:
    return str(int(value))  # SQLite reads nothing else.


def _digits(key: UUID | str) -> str:
    return key if isinstance(key, str) else key.hex
