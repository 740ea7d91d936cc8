"""Rows of many kinds, counted in one statement: each kind up to a limit, so that a million rows cost no more than that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import CharField, QuerySet
from django.db.models.expressions import RawSQL

# What the rows of an ``Ask`` are told apart by: the two texts of a pair, in conditions of its query.
KIND: Final = RawSQL("asked.kind", (), output_field=CharField())
DETAIL: Final = RawSQL("asked.detail", (), output_field=CharField())


class Ask(NamedTuple):
    """
    Rows to be counted, apart for each pair of texts.

    Args:
        name: Tells its counts from those of others.
        rows: Their query, with ``KIND`` and ``DETAIL`` in its conditions, in the order of the index that is to find them.
        pairs: Each a kind and a detail.
    """

    name: str
    rows: QuerySet[Any]
    pairs: Sequence[tuple[str, str]]


Counts = dict[tuple[str, str, str], int]


def counts_of(asks: Iterable[Ask], *, most: int, using: str) -> Counts:
    """
    Count in one statement, which is planned once, however many pairs there are.

    Each pair is looked for by itself: of several states at once, PostgreSQL may read all rows that have any of them.

    Args:
        asks: With names of their own.
        most: So many rows of each pair are counted, and one more, which says that there are more.
        using: Database alias.

    Returns:
        (Name, kind, detail) → how many; what there is nothing of is left out.
    """
    lists, parts, texts, values = list[str](), list[str](), list[Any](), list[Any]()
    for number, ask in enumerate(asks):
        try:
            sql, parameters = ask.rows.values("pk")[: most + 1].query.get_compiler(using).as_sql()
        except EmptyResultSet:
            continue  # Whoever asks may see none of them.
        if not ask.pairs:
            continue
        lists.append(f"asked_{number} (kind, detail) AS (VALUES {', '.join(['(%s, %s)'] * len(ask.pairs))})")
        texts += [text for pair in ask.pairs for text in pair]
        told = f"%s, asked.kind, asked.detail, (SELECT COUNT(*) FROM ({sql}) AS counted)"  # noqa: S608 (Django wrote it)
        parts.append(f"SELECT {told} FROM asked_{number} AS asked")  # noqa: S608
        values += [ask.name, *parameters]
    if not parts:
        return {}
    with connections[using].cursor() as cursor:
        cursor.execute(f"WITH {', '.join(lists)} {' UNION ALL '.join(parts)}", [*texts, *values])
        return {(name, kind, detail): count for name, kind, detail, count in cursor.fetchall() if count}
