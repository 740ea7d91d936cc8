"""Insert rows whose place may be taken: a duplicate is left out and breaks nobody's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from django.db import connections
from django.db.models import Model
from django.db.models.sql import InsertQuery

Row = TypeVar("Row", bound=Model)


def insert_missing(rows: Sequence[Row], *, using: str) -> list[Row]:
    """
    Insert rows with ``INSERT … ON CONFLICT DO NOTHING RETURNING``: one statement, or as few as the database takes them in.

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
    model, connection = type(rows[0]), connections[using]
    fields = model._meta.concrete_fields
    size = max(connection.ops.bulk_batch_size(fields, rows), 1)
    inserted = set()
    with connection.cursor() as cursor:
        for start in range(0, len(rows), size):
            query = InsertQuery(model)
            query.insert_values(fields, list(rows[start : start + size]))
            compiler = query.get_compiler(using=using)
            compiler.returning_fields = [model._meta.pk]
            [(sql, parameters)] = compiler.as_sql()
            insert, returning, columns = sql.rpartition(" RETURNING ")
            cursor.execute(f"{insert} ON CONFLICT DO NOTHING{returning}{columns}", parameters)
            inserted |= {model._meta.pk.to_python(key) for [key] in cursor.fetchall()}
    there = [row for row in rows if row.pk in inserted]
    for row in there:
        row._state.adding, row._state.db = False, using
    return there
