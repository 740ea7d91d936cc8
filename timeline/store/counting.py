"""Rows of many kinds, counted in one statement: each kind up to a limit, so that a million rows cost no more than that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import CharField, QuerySet
from django.db.models.expressions import RawSQL

from timeline.dialects import dialect_of

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

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


@dataclass(frozen=True, slots=True)
class Counted:
    """
    Tasks that were counted.

    Args:
        count: How many.
        first_at: Due time of the first of them; None: there is none.
    """

    count: int = 0
    first_at: datetime | None = None


def counted_apart(asks: Iterable[tuple[str, ScheduledTaskQuerySet]], *, most: int, using: str) -> dict[str, Counted]:
    """
    Count tasks of several queries in one statement.

    Args:
        asks: Name and query, in the order of the index that is to find its rows. What has the same name is summed up.
        most: So many rows of each query are counted, and so many are told of a name.
        using: Database alias.

    Returns:
        Name → what was found; where nothing can be asked, it is left out.
    """
    parts, values = list[str](), list[Any]()
    for name, rows in asks:
        try:
            sql, parameters = rows.values("scheduled_at")[:most].query.get_compiler(using).as_sql()
        except EmptyResultSet:
            continue  # No kind of task is known, or none is free.
        parts.append(f"SELECT %s, COUNT(*), MIN(scheduled_at) FROM ({sql}) AS counted")  # noqa: S608 (Django wrote it)
        values += [name, *parameters]
    found = dict[str, Counted]()
    if not parts:
        return found
    with connections[using].cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), values)
        for name, count, first_at in cursor.fetchall():
            before = found.get(name, Counted())
            times = [at for at in (before.first_at, _as_time(first_at, using)) if at is not None]
            found[name] = Counted(min(before.count + count, most), min(times, default=None))
    return found


def _as_time(at: Any, using: str) -> datetime | None:
    has_types = at is None or dialect_of(using).has_time_types
    return at if has_types else datetime.fromisoformat(at).replace(tzinfo=UTC)
