"""The rows that runs are planned from, locked or just read. Which they are says ``models/visits.py``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from django.db import connections

from timeline.dialects import dialect_of
from timeline.models import ScheduledTask
from timeline.models.statements import narrowed
from timeline.models.visits import RowsToPlan
from timeline.store.returning import FIELDS, as_tasks, cursor_for_rows, rows_of


def lock_rows_to_plan(wanted: RowsToPlan, *, using: str) -> list[ScheduledTask]:
    """
    Lock the rows that runs are planned from, and read them; the caller has locked the runs.

    Args:
        wanted: Which.
        using: Database alias.
    """
    return _rows(wanted, tuple(FIELDS), "locked", using)


def read_rows_to_plan(wanted: RowsToPlan, columns: Sequence[str], *, using: str) -> list[ScheduledTask]:
    """
    Read the rows that runs are planned from.

    Args:
        wanted: Which.
        columns: What is read of them, with ``id`` and ``run_id``; the rest is read when it is asked for.
        using: Database alias.
    """
    return _rows(wanted, tuple(columns), "", using)


def _rows(wanted: RowsToPlan, columns: tuple[str, ...], how: str, using: str) -> list[ScheduledTask]:
    if not wanted.whole and not wanted.in_states:
        return []
    connection, dialect = connections[using], dialect_of(using)
    names = {name for name in ("whole", "in_states", "others", "visits") if getattr(wanted, name)}
    runs = {name: dialect.list_of(key.hex for key in getattr(wanted, name)) for name in ("whole", "in_states")}
    keys = {name: dialect.list_of(getattr(wanted, name)) for name in ("others", "bound", "visits")}
    with cursor_for_rows(connection) as cursor:
        cursor.execute(statement_of_rows(using, columns, frozenset({*names, how})), runs | keys)
        return as_tasks(rows_of(cursor, connection, columns).values(), using)


@cache
def statement_of_rows(using: str, columns: tuple[str, ...], names: frozenset[str]) -> str:
    """The statement, with these columns and the lines that these names ask for."""
    read = ", ".join(str(FIELDS[name].column) for name in columns)
    return narrowed(dialect_of(using).sql("rows_to_plan").replace("{columns}", read), names)
