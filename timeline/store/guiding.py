"""Guiding: settings of PostgreSQL's that hold for one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from django.db import connections

from timeline.dialects import dialect_of, is_by_psycopg3
from timeline.store.isolating import atomic

# For what takes the first rows of an index. Where statistics are of a time when nothing was ready, one index is as good as
# another to PostgreSQL: it would read a hundred thousand ready rows by one that has them in another order, and sort them, for
# the first hundred. Being told not to sort raises what a plan seems to cost, and so must not call for compiling it.
IN_ORDER: Final = {"enable_sort": "off", "enable_incremental_sort": "off", "jit": "off"}


def execute_guided(
    cursor: Any, sql: str, parameters: Mapping[str, Any] | Sequence[Any], *, settings: Mapping[str, str], using: str
) -> None:
    """
    Execute one statement under settings of its own. Outside a transaction it is one of its own.

    Where psycopg 3 binds parameters, as Django has it unless told otherwise, settings, statement and commit are one trip to the
    database, where they would be four; each takes its turn for the processor. In a caller's transaction the settings hold
    until its end. SQLite has none.
    """
    connection: Any = connections[using]
    if not settings or not dialect_of(using).has_settings:
        cursor.execute(sql, parameters)
    elif is_by_psycopg3(connection) and not connection.features.uses_server_side_binding:
        cursor.execute(f"{as_select(settings)};\n{sql}", parameters)
        cursor.nextset()
    else:
        with atomic(using=using):
            cursor.execute(as_select(settings))
            cursor.execute(sql, parameters)


def as_select(settings: Mapping[str, str]) -> str:
    """Write the statement that makes settings until the end of the transaction. Of our own words only."""
    return "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())


@contextmanager
def guided(settings: Mapping[str, str], *, using: str) -> Iterator[None]:
    """Let the queries of a block be executed with these settings, each in one statement with them where that can be."""
    connection: Any = connections[using]
    if not dialect_of(using).has_settings:
        yield
    elif is_by_psycopg3(connection) and not connection.features.uses_server_side_binding:

        def set_first(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
            found = execute(f"{as_select(settings)};\n{sql}", params, many, context)
            context["cursor"].nextset()
            return found

        connection.execute_wrappers.insert(0, set_first)  # First: other wrappers see a statement as it is sent.
        try:
            yield
        finally:
            connection.execute_wrappers.remove(set_first)
    else:
        with atomic(using=using):
            with connection.cursor() as cursor:
                cursor.execute(as_select(settings))
            yield
