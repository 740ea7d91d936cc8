"""Count the tasks of a question by state, or by spans of due times: all of them, or up to a limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import Count, DateTimeField
from django.db.models.expressions import RawSQL

from timeline.lifecycle import FINAL, OPEN, WAITING, State
from timeline.store.earliest import WALKED
from timeline.store.index_selection import ALL, NOWHERE, Way, can_look_for_each, ways_to
from timeline.store.transactions import AS_IT_IS, execute_guided, guided

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


# If PostgreSQL expects few rows and there are very many, it would sort them in a file to count those of a few states.
_UNSORTED: Final = {**AS_IT_IS, "enable_sort": "off"}

Span = tuple[datetime, datetime]
FEW: Final = 50  # Up to so many entities are looked for in each span separately.
_FIRST: Final = RawSQL("span.first", (), output_field=DateTimeField())
_LAST: Final = RawSQL("span.last", (), output_field=DateTimeField())
_AT_WORK: Final = OPEN - WAITING
_GROUPS: Final = (WAITING, _AT_WORK, frozenset({State.COMPLETED}), FINAL - {State.COMPLETED})


def counts_by_state(
    tasks: ScheduledTaskQuerySet,
    states: Collection[str],
    kinds: Callable[[], Collection[str]],
    *,
    most: int = ALL,
) -> Counter[str]:
    """
    Count the tasks of a question by state; no tasks of others are read (``ways_to``). Of each kind or entity by which they are
    found, ``most`` are counted, and one more.
    """
    counts = Counter[str]()
    if tasks.query.is_empty():
        return counts
    ways = ways_to(tasks, states, kinds) if can_look_for_each(tasks.db) else NOWHERE._replace(walked=[tasks])
    for rows in ways.walked:
        counted = rows.filter(state__in=sorted(states)).order_by().values_list("state").annotate(count=Count("pk"))
        with guided(_UNSORTED, using=tasks.db):
            counts.update(dict(counted))
    parts, parameters = list[str](), list[Any]()
    for way in ways.looked_for:
        if (found := way.sql(way.rows.order_by().values("state")[: most + 1], tasks.db)) is not None:
            parts.append(f"SELECT found.state FROM {found[0]} AS found (state)")  # noqa: S608 (Django wrote it)
            parameters += found[1]
    if parts:
        sql = f"SELECT state, COUNT(*) FROM ({' UNION ALL '.join(parts)}) AS found (state) GROUP BY state"  # noqa: S608
        with connections[tasks.db].cursor() as cursor:
            execute_guided(cursor, sql, parameters, settings=AS_IT_IS, using=tasks.db)
            counts.update(dict(cursor.fetchall()))
    return counts


class _Place(Enum):
    """Places for the ends of a span in a statement that is compiled once for all spans."""

    BEGIN = "begin"
    END = "end"


def counts_in(
    tasks: ScheduledTaskQuerySet,
    states: Collection[State],
    spans: Sequence[Span],
    most: int,
    *,
    now: datetime,
    kinds: Callable[[], Collection[str]],
) -> list[int]:
    """Count the tasks due in each of some spans, not at its end. More than ``most`` says only: there are more."""
    counts = [0] * len(spans)
    if tasks.query.is_empty() or not spans:
        return counts
    if not can_look_for_each(tasks.db):
        return _walked(tasks, states, spans, most, now)
    ways = ways_to(tasks, states, kinds)
    if ways.looked_for:
        counts = _looked_for(ways.looked_for, spans, most, tasks.db)
    for rows in ways.walked:
        counts = [sum(pair) for pair in zip(counts, _walked(rows, states, spans, most, now), strict=True)]
    return counts


def _looked_for(ways: Sequence[Way], spans: Sequence[Span], most: int, using: str) -> list[int]:
    """
    Count what is looked for by pairs in one statement: each pair in each span, up to the limit. For more than a few entities,
    all their tasks are read once for all spans, as each has few.
    """
    read, values = list[str](), list[Any]()
    parts, parameters = list[str](), list[Any]()
    for number, way in enumerate(ways):
        at_once = way.by_entity and len(way.pairs) > FEW
        ends = min(first for first, _last in spans), max(last for _first, last in spans)
        first, last = ends if at_once else (_FIRST, _LAST)
        due = way.rows.filter(scheduled_at__gte=first, scheduled_at__lt=last).order_by().values("scheduled_at")
        if (found := way.sql(due[: ALL if at_once else most + 1], using)) is None:
            continue
        if at_once:
            read.append(f"read_{number} AS MATERIALIZED (SELECT found.at FROM {found[0]} AS found (at))")  # noqa: S608
            values += found[1]
            parts.append(f"(SELECT COUNT(*) FROM read_{number} WHERE at >= span.first AND at < span.last)")  # noqa: S608
        else:
            parts.append(f"(SELECT COUNT(*) FROM (SELECT FROM {found[0]} AS found LIMIT %s) AS counted)")  # noqa: S608
            parameters += [*found[1], most + 1]
    counts = [0] * len(spans)
    if not parts:
        return counts
    asked = ", ".join(["(%s::int, %s::timestamptz, %s::timestamptz)"] * len(spans))
    told = [value for number, span in enumerate(spans) for value in (number, *span)]
    first_read = f"WITH {', '.join(read)} " if read else ""
    sql = f"{first_read}SELECT span.number, {' + '.join(parts)} FROM (VALUES {asked}) AS span (number, first, last)"  # noqa: S608
    with connections[using].cursor() as cursor:
        execute_guided(cursor, sql, [*values, *parameters, *told], settings=WALKED, using=using)
        for number, count in cursor.fetchall():
            counts[number] = count
    return counts


def _walked(
    tasks: ScheduledTaskQuerySet, states: Collection[State], spans: Sequence[Span], most: int, now: datetime
) -> list[int]:
    """
    Count each span and each group of states separately. Open tasks that do not wait have been due: none is in a later span. If
    a query has all open states, or all final ones, PostgreSQL 15 drops this condition and reads the partial index from its
    beginning.
    """
    wanted = [(group, sorted(group & set(states))) for group in _GROUPS if group & set(states)]
    groups = [(group, _counted(tasks, some, most)) for group, some in wanted]
    asked = [
        (number, counted)
        for number, (begin, _end) in enumerate(spans)
        for group, counted in groups
        if counted is not None and (begin <= now or group != _AT_WORK)
    ]
    counts = [0] * len(spans)
    if not asked:
        return counts
    as_stored = connections[tasks.db].ops.adapt_datetimefield_value
    values = list[Any]()
    for number, (_sql, parameters) in asked:
        ends = dict(zip(_Place, map(as_stored, spans[number]), strict=True))
        values += [ends[value] if isinstance(value, _Place) else value for value in parameters]
    with connections[tasks.db].cursor() as cursor:
        sql = f"SELECT {', '.join(sql for _number, (sql, _parameters) in asked)}"
        execute_guided(cursor, sql, values, settings=AS_IT_IS, using=tasks.db)
        row = cursor.fetchone()
    for (number, _counted_so), count in zip(asked, row, strict=True):
        counts[number] += count
    return counts


def _counted(tasks: ScheduledTaskQuerySet, states: Sequence[State], most: int) -> tuple[str, Sequence[Any]] | None:
    """The text that counts the tasks in a span, compiled once, with places for the ends of the span. None: there are none."""
    due = tasks.filter(state__in=states, scheduled_at__gte=_at(_Place.BEGIN), scheduled_at__lt=_at(_Place.END))
    try:
        sql, parameters = due.order_by().values("scheduled_at")[: most + 1].query.get_compiler(tasks.db).as_sql()
    except EmptyResultSet:
        return None  # The query can find nothing: the one who asks may see none of these rows.
    return f"(SELECT COUNT(*) FROM ({sql}) AS counted)", parameters  # noqa: S608 (compiled by Django)


def _at(place: _Place) -> RawSQL:
    return RawSQL("%s", (place,), output_field=DateTimeField())
