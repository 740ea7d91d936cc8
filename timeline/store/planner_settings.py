"""Settings of PostgreSQL's planner that hold for one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from django.db import connections

from timeline.dialects import dialect_of, is_by_psycopg3
from timeline.store.isolation_level import atomic

# For statements that read the first rows of an index. If the statistics are from a time when nothing was ready, PostgreSQL
# takes all indexes for equally good: to find the first hundred rows, it might read a hundred thousand ready rows by an index
# with another order, and sort them. With sorting off, a plan seems to cost more, and this must not start the JIT compiler.
IN_ORDER: Final = {"enable_sort": "off", "enable_incremental_sort": "off", "jit": "off"}

# For statements that read few rows by many expressions: compiling takes a hundred times as long as executing.
AS_IT_IS: Final = {"jit": "off"}

_WAS: Final = "timeline_was"  # Prefix of settings of our own: they keep the values of a caller's transaction.


def execute_guided(
    cursor: Any, sql: str, parameters: Mapping[str, Any] | Sequence[Any], *, settings: Mapping[str, str], using: str
) -> None:
    """
    Execute one statement with settings of its own, which are put back in a caller's transaction; SQLite has none. If psycopg 3
    binds parameters on the client, as in Django by default, settings, statement and commit are one trip; otherwise four.
    """
    connection: Any = connections[using]
    if not settings or not dialect_of(using).has_settings:
        cursor.execute(sql, parameters)
    elif is_by_psycopg3(connection) and not connection.features.uses_server_side_binding:
        is_among_others = connection.in_atomic_block
        cursor.execute(_around(sql, settings, is_among_others=is_among_others), parameters)
        for _before in range(1 + is_among_others):
            cursor.nextset()
    else:
        with _set(settings, connection, using=using):
            cursor.execute(sql, parameters)


def as_select(settings: Mapping[str, str]) -> str:
    """The statement that makes settings until the end of the transaction. Names and values are our own texts only."""
    return "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())


def _around(sql: str, settings: Mapping[str, str], *, is_among_others: bool) -> str:
    """The statement with its settings before it and, inside a transaction, a statement after it that puts them back."""
    if not is_among_others:
        return f"{as_select(settings)};\n{sql}"
    return f"{_kept(settings)};\n{as_select(settings)};\n{sql}\n; {_back(settings)}"


def _kept(settings: Mapping[str, str]) -> str:
    """The statement that keeps the present settings until the end of the transaction."""
    kept = (f"set_config('{_WAS}.{name}', current_setting('{name}'), true)" for name in settings)
    return f"SELECT {', '.join(kept)}"


def _back(settings: Mapping[str, str]) -> str:
    """The statement that puts the kept settings back."""
    back = (f"set_config('{name}', current_setting('{_WAS}.{name}'), true)" for name in settings)
    return f"SELECT {', '.join(back)}"


@contextmanager
def _set(settings: Mapping[str, str], connection: Any, *, using: str) -> Iterator[None]:
    """Execute a block with settings, in a transaction. In the caller's transaction, the settings are put back afterwards."""
    is_among_others = connection.in_atomic_block
    with atomic(using=using):
        with connection.cursor() as cursor:
            if is_among_others:
                cursor.execute(_kept(settings))
            cursor.execute(as_select(settings))
        yield
        if is_among_others:
            with connection.cursor() as cursor:
                cursor.execute(_back(settings))


@contextmanager
def guided(settings: Mapping[str, str], *, using: str) -> Iterator[None]:
    """Execute the queries of a block with these settings; if possible, each together with them in one trip."""
    connection: Any = connections[using]
    if not dialect_of(using).has_settings:
        yield
    elif is_by_psycopg3(connection) and not connection.features.uses_server_side_binding:

        def set_first(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
            is_among_others = connection.in_atomic_block
            found = execute(_around(sql, settings, is_among_others=is_among_others), params, many, context)
            for _before in range(1 + is_among_others):
                context["cursor"].nextset()
            return found

        connection.execute_wrappers.insert(0, set_first)  # First: so other wrappers see the statement as it is sent.
        try:
            yield
        finally:
            connection.execute_wrappers.remove(set_first)
    else:
        with _set(settings, connection, using=using):
            yield
