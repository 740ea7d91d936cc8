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

# For what reads few rows by many expressions: to compile it takes a hundred times as long as to execute it.
AS_IT_IS: Final = {"jit": "off"}

_WAS: Final = "timeline_was"  # A name of ours for settings: what those of a caller's transaction were before.


def execute_guided(
    cursor: Any, sql: str, parameters: Mapping[str, Any] | Sequence[Any], *, settings: Mapping[str, str], using: str
) -> None:
    """
    Execute one statement under settings of its own. Outside a transaction it is one of its own; in a caller's transaction the
    settings are as they were before when it is through. SQLite has none.

    Where psycopg 3 binds parameters, as Django has it unless told otherwise, settings, statement and commit are one trip to the
    database, where they would be four; each takes its turn for the processor.
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
    """Write the statement that makes settings until the end of the transaction. Of our own words only."""
    return "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())


def _around(sql: str, settings: Mapping[str, str], *, is_among_others: bool) -> str:
    """Write a statement with its settings before it and, among others of a transaction, what sets them back after it."""
    if not is_among_others:
        return f"{as_select(settings)};\n{sql}"
    return f"{_kept(settings)};\n{as_select(settings)};\n{sql}\n; {_back(settings)}"


def _kept(settings: Mapping[str, str]) -> str:
    """Write the statement that keeps what the settings are, for the time of the transaction."""
    kept = (f"set_config('{_WAS}.{name}', current_setting('{name}'), true)" for name in settings)
    return f"SELECT {', '.join(kept)}"


def _back(settings: Mapping[str, str]) -> str:
    """Write the statement that sets them back to what was kept."""
    back = (f"set_config('{name}', current_setting('{_WAS}.{name}'), true)" for name in settings)
    return f"SELECT {', '.join(back)}"


@contextmanager
def _set(settings: Mapping[str, str], connection: Any, *, using: str) -> Iterator[None]:
    """Let a block be executed under settings, in a transaction; in a caller's, set them back."""
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
    """Let the queries of a block be executed with these settings, each in one statement with them where that can be."""
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

        connection.execute_wrappers.insert(0, set_first)  # First: other wrappers see a statement as it is sent.
        try:
            yield
        finally:
            connection.execute_wrappers.remove(set_first)
    else:
        with _set(settings, connection, using=using):
            yield
