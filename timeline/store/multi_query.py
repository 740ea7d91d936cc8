"""Save trips: read several queries in one statement, each row as JSON; or send statements without waiting (``pipelining``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import DurationField, QuerySet
from django.db.models.query import ModelIterable
from django.utils.dateparse import parse_duration

from timeline.clocks import is_told, story_now
from timeline.dialects import Dialect, dialect_of, is_by_psycopg3, target_of
from timeline.store.returned_rows import READ_FROM_JSON
from timeline.store.transactions import AS_IT_IS, execute_guided

Convert = Callable[[Any], Any]
_READ: Final[dict[Any, Convert]] = {**READ_FROM_JSON, DurationField: parse_duration}

_NOT_PIPELINED: Final = 0  # The number in libpq.


class Words(NamedTuple):
    """
    A statement of our own among queries: one column, whose values JSON can have as they are. ``parameters`` None: it has none,
    and its percent signs are meant.
    """

    sql: str
    parameters: Sequence[Any] | None = None


class _Part(NamedTuple):
    sql: str
    parameters: Sequence[Any]
    width: int
    read: Callable[[list[Any]], Any]


def gather(
    asked: Sequence[QuerySet[Any] | Words], *, settings: Mapping[str, str] = AS_IT_IS, using: str
) -> list[list[Any]]:
    """
    Read queries without joins in one statement: the rows of each, unordered if there is no limit, or the values of ``Words``.
    ``settings``: of the planner, for this statement.
    """
    parts = {number: part for number, each in enumerate(asked) if (part := _part_of(each, using)) is not None}
    found: list[list[Any]] = [[] for _each in asked]
    if not parts:
        return found
    row = "json_build_array({})::text" if dialect_of(using).has_time_types else "json_array({})"
    named, selected = list[str](), list[str]()
    for number, part in parts.items():
        columns = ", ".join(f"c{place}" for place in range(part.width))
        named.append(f"part_{number} ({columns}) AS ({part.sql})")
        selected.append(f"SELECT {number}, {row.format(columns)} FROM part_{number}")  # noqa: S608 (names of our own)
    with connections[using].cursor() as cursor:
        parameters = [value for part in parts.values() for value in part.parameters]
        sql = f"WITH {', '.join(named)} {' UNION ALL '.join(selected)}"
        execute_guided(cursor, sql, parameters, settings=settings, using=using)
        for number, said in cursor.fetchall():
            found[number].append(parts[number].read(json.loads(said)))
    return found


def gather_now(asked: Sequence[QuerySet[Any] | Words], *, using: str) -> tuple[datetime, list[list[Any]]]:
    """Read story time, too: in the same statement, if the database tells it."""
    if is_told():
        return story_now(using), gather(asked, using=using)
    [[now], *found] = gather([Words(dialect_of(using).sql("story_now").rstrip("; \n")), *asked], using=using)
    at = datetime.fromisoformat(now)
    return (at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)), found


def _part_of(asked: QuerySet[Any] | Words, using: str) -> _Part | None:
    """A part of the statement; None: it can find nothing."""
    if isinstance(asked, Words):
        sql = asked.sql.replace("%", "%%") if asked.parameters is None else asked.sql
        return _Part(sql, asked.parameters or (), 1, lambda values: values[0])
    return _part_of_query(asked, using)


def _part_of_query(asked: QuerySet[Any], using: str) -> _Part | None:
    compiler: Any = asked.query.get_compiler(using)
    try:
        sql, parameters = compiler.as_sql()
    except EmptyResultSet:
        return None
    converters = list(_converters(compiler, dialect_of(using)))
    width = len(compiler.select)

    def values_of(values: list[Any]) -> list[Any]:
        for place, convert in converters:
            if values[place] is not None:
                values[place] = convert(values[place])
        return values

    if not issubclass(asked._iterable_class, ModelIterable):
        return _Part(sql, parameters, width, lambda values: tuple(values_of(values)))
    model, places = asked.model, compiler.klass_info["select_fields"]
    names = [compiler.select[place][0].target.attname for place in places]

    def model_of(values: list[Any]) -> Any:
        values = values_of(values)
        made = model.from_db(using, names, [values[place] for place in places])
        for name, place in compiler.annotation_col_map.items():
            setattr(made, name, values[place])
        return made

    return _Part(sql, parameters, width, model_of)


def _converters(compiler: Any, dialect: Dialect) -> Iterator[tuple[int, Convert]]:
    """Functions that turn values of columns into those of the model, for columns whose values in JSON are different."""
    if dialect.has_time_types:
        for place, (column, _sql, _alias) in enumerate(compiler.select):
            if (read := _READ.get(type(target_of(column.output_field)))) is not None:
                yield place, read
        return
    connection = compiler.connection
    for place, (converts, column) in compiler.get_converters([column for column, *_names in compiler.select]).items():
        for convert in converts:
            yield place, _applied(convert, column, connection)


def _applied(convert: Callable[..., Any], column: Any, connection: Any) -> Convert:
    """Convert as Django does, except for JSON within JSON, which is parsed already."""
    return lambda value: value if isinstance(value, dict | list) else convert(value, column, connection)


def can_pipeline(using: str) -> bool:
    """Whether statements can be sent without waiting: on PostgreSQL with psycopg 3, and libpq 14 or later."""
    connection: Any = connections[using]
    return is_by_psycopg3(connection) and connection.Database.Pipeline.is_supported()


def takes_texts(connection: Any) -> bool:
    """Whether several statements can go as one text. Cursors must bind on the client, and such a text cannot be pipelined."""
    if not is_by_psycopg3(connection):
        return False
    driver = connection.connection
    as_they_are = issubclass(driver.cursor_factory, connection.Database.ClientCursor)
    return as_they_are and driver.pgconn.pipeline_status == _NOT_PIPELINED


@contextmanager
def pipelining(using: str) -> Iterator[None]:
    """
    Send statements without waiting for each, inside the caller's transaction; ``fetchone`` or ``fetchall`` waits for the
    result. An error of a statement that nobody reads is raised by a later one, or at the end; those sent after it are not
    executed. Querysets made by ``raw`` do not work: they look at the result before they fetch it.
    """
    connection: Any = connections[using]
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield
