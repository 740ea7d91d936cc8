"""Count rows of many kinds in one statement: each kind up to a limit, so that a million rows cost no more than a few."""

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
from timeline.store.transactions import AS_IT_IS, execute_guided

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


# The two texts of a pair of an ``Pairs``, for conditions of its query.
KIND: Final = RawSQL("asked.kind", (), output_field=CharField())
DETAIL: Final = RawSQL("asked.detail", (), output_field=CharField())


class Pairs(NamedTuple):
    """Rows to count for each pair: ``KIND`` and ``DETAIL`` are in the conditions, and the order is that of its index."""

    name: str
    rows: QuerySet[Any]
    pairs: Sequence[tuple[str, str]]


Counts = dict[tuple[str, str, str], int]


def counts_of(asks: Iterable[Pairs], *, most: int, using: str) -> Counts:
    """
    Count in one statement: (name, kind, detail) → rows, up to ``most`` and one more. Pairs without rows are left out. Each pair
    is looked for separately: for several states at once, PostgreSQL might read all rows in these states.
    """
    lists, parts, texts, values = list[str](), list[str](), list[Any](), list[Any]()
    for number, ask in enumerate(asks):
        try:
            sql, parameters = ask.rows.values("pk")[: most + 1].query.get_compiler(using).as_sql()
        except EmptyResultSet:
            continue  # The query can find nothing: the one who asks may see none of these rows.
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
        sql = f"WITH {', '.join(lists)} {' UNION ALL '.join(parts)}"
        execute_guided(cursor, sql, [*texts, *values], settings=AS_IT_IS, using=using)
        return {(name, kind, detail): count for name, kind, detail, count in cursor.fetchall() if count}


def first_of_each(rows: QuerySet[Any], kinds: Sequence[str]) -> list[Any]:
    """Of each kind the first row, in one statement. ``KIND`` is in the conditions of the query, and it has an order."""
    sql, parameters = rows.values("pk")[:1].query.get_compiler(rows.db).as_sql()
    asked = f"WITH asked (kind) AS (VALUES {', '.join(['(%s)'] * len(kinds))}) SELECT ({sql}) FROM asked"  # noqa: S608
    first = RawSQL(asked, [*kinds, *parameters])  # noqa: S611 (Django wrote it)
    return list(rows.model._default_manager.using(rows.db).filter(pk__in=first)) if kinds else []


@dataclass(frozen=True, slots=True)
class Counted:
    """How many tasks there are, and the earliest due time of these; None: there are none."""

    count: int = 0
    first_at: datetime | None = None


def counted_apart(asks: Iterable[tuple[str, ScheduledTaskQuerySet]], *, most: int, using: str) -> dict[str, Counted]:
    """
    Count tasks of named queries in one statement, each query up to ``most``. Queries with the same name are added up. Each has
    the order of the index that finds its rows. Names whose queries can find nothing are left out.
    """
    parts, values = list[str](), list[Any]()
    for name, rows in asks:
        try:
            sql, parameters = rows.values("scheduled_at")[:most].query.get_compiler(using).as_sql()
        except EmptyResultSet:
            continue  # The query can find nothing: no kind of task is known, or none is free.
        parts.append(f"SELECT %s, COUNT(*), MIN(scheduled_at) FROM ({sql}) AS counted")  # noqa: S608 (Django wrote it)
        values += [name, *parameters]
    found = dict[str, Counted]()
    if not parts:
        return found
    with connections[using].cursor() as cursor:
        execute_guided(cursor, " UNION ALL ".join(parts), values, settings=AS_IT_IS, using=using)
        for name, count, first_at in cursor.fetchall():
            before = found.get(name, Counted())
            times = [at for at in (before.first_at, _as_time(first_at, using)) if at is not None]
            found[name] = Counted(min(before.count + count, most), min(times, default=None))
    return found


def _as_time(at: Any, using: str) -> datetime | None:
    has_types = at is None or dialect_of(using).has_time_types
    return at if has_types else datetime.fromisoformat(at).replace(tzinfo=UTC)
