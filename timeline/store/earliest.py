"""Find the first tasks of a question without reading the tasks of others on the way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL
from django.db.models.sql.where import AND, WhereNode

from timeline.store.index_selection import NOWHERE, KindsThere, Ways, can_look_for_each, ways_to
from timeline.store.multi_query import gather
from timeline.store.transactions import guided

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet

# Some conditions are expensive for each row. With these settings PostgreSQL checks them for as few rows as it needs to find so
# many. Otherwise it might check all rows of a kind and sort them afterwards, if it thinks that they are few.
WALKED: Final = {"enable_sort": "off", "enable_bitmapscan": "off", "jit": "off"}


class FirstAsked(NamedTuple):
    """Which tasks to read: in these states, the latest first or the earliest."""

    states: Collection[str]
    latest: bool = False


def first_page(
    tasks: ScheduledTaskQuerySet, first: FirstAsked, most: int, *, kinds: Callable[[], Collection[str]] | None = None
) -> list[ScheduledTask]:
    """
    Read the first tasks of a question in some states, by time and then primary key. ``kinds`` gives the existing kinds;
    without it, they are read. Each part is found by an index of its own (``ways_to``), so that no tasks of others are read.
    """
    if tasks.query.is_empty():
        return []
    ways = ways_to(tasks, first.states, kinds or KindsThere(tasks.db)) if can_look_for_each(tasks.db) else NOWHERE
    if not ways.looked_for:  # Also if there is no way at all: then this finds nothing, at once.
        return list(tasks.first_of(first.states, most, latest=first.latest))
    found = _keys_on([_first_on(ways, first, most, ("-pk",) if first.latest else ("pk",), tasks.db)])
    rows = tasks.all()
    rows.query.where = WhereNode([], AND)  # Everything else of the query stays, such as joins.
    with guided(WALKED, using=tasks.db):
        return sorted(rows.filter(found) if found else (), key=_moment, reverse=first.latest)[:most]


def first_of_kinds(
    tasks: ScheduledTaskQuerySet,
    task_keys: Collection[str],
    asked: Sequence[FirstAsked],
    most: int,
    *,
    also: Callable[[ScheduledTaskQuerySet], ScheduledTaskQuerySet] = lambda tasks: tasks,
    ties: tuple[str, ...] = (),
) -> list[list[ScheduledTask]]:
    """
    Read the earliest (or latest) tasks of these kinds with their runs, up to ``most`` for each item of ``asked``, in one
    statement (two on SQLite). No state may be asked for twice. Any of those due at the same moment are read, if ``ties`` is
    empty.

    They are found by entity, if these are few, otherwise by kind and state. By state alone, PostgreSQL might read every task in
    a state to find enough that fit.
    """
    meant = tasks.with_handler(sorted(task_keys))
    if can_look_for_each(tasks.db):
        sides = [] if meant.query.is_empty() or not task_keys else asked
        found: Q | RawSQL | None = _keys_on(
            [_first_on(ways_to(meant, first.states, list), first, most, ties, tasks.db) for first in sides]
        )
    else:
        found = _keys_by_states(meant, asked, most)
    read: list[ScheduledTask] = []
    if found is not None:
        rows = tasks.model._default_manager.using(tasks.db).filter(found).select_related("run")
        with guided(WALKED, using=tasks.db):
            read = list(also(rows))
    return [
        sorted((task for task in read if task.state in first.states), key=_moment, reverse=first.latest)
        for first in asked
    ]


def _keys_by_states(tasks: ScheduledTaskQuerySet, asked: Sequence[FirstAsked], most: int) -> Q:
    sides = [tasks.first_of(sorted(first.states), most, latest=first.latest) for first in asked]
    found = gather([side.values_list("pk", "scheduled_at") for side in sides], using=tasks.db)
    return Q(pk__in={key for side in found for key, _at in side})


def _keys_on(sides: Sequence[tuple[str, list[Any]] | None]) -> RawSQL | None:
    """Condition for the rows that are found by these statements; None: there are none."""
    some = [side for side in sides if side is not None]
    if not some:
        return None
    parts = " UNION ALL ".join(f"({sql})" for sql, _values in some)
    # With an array, PostgreSQL finds the keys first, however many it expects, and then each row by its primary key.
    sql = f"timeline_scheduledtask.id = ANY(ARRAY({parts}))"
    return RawSQL(sql, [value for _sql, values in some for value in values], output_field=BooleanField())  # noqa: S611 (ours)


def _moment(task: ScheduledTask) -> tuple[datetime, UUID]:
    return task.scheduled_at, task.pk


def _first_on(
    ways: Ways, first: FirstAsked, most: int, ties: tuple[str, ...], using: str
) -> tuple[str, list[Any]] | None:
    """The statement that finds the first keys on these ways, with its parameters; None: there can be no rows."""
    parts, parameters = list[str](), list[Any]()
    order = ("-scheduled_at" if first.latest else "scheduled_at", *ties)
    for way in ways.looked_for:
        if (found := way.sql(way.rows.order_by(*order).values("pk", "scheduled_at")[:most], using)) is not None:
            parts.append(f"SELECT found.id, found.at FROM {found[0]} AS found (id, at)")  # noqa: S608 (Django wrote it)
            parameters += found[1]
    for rows in ways.walked:
        with suppress(EmptyResultSet):
            some = rows.first_of(first.states, most, latest=first.latest).values("pk", "scheduled_at")
            sql, values = some.query.get_compiler(using).as_sql()
            parts.append(f"({sql})")
            parameters += values
    if not parts:
        return None
    way_round = "DESC" if first.latest else "ASC"
    every = f"SELECT found.id FROM ({' UNION ALL '.join(parts)}) AS found (id, at)"  # noqa: S608
    return f"{every} ORDER BY found.at {way_round}, found.id {way_round} LIMIT %s", [*parameters, most]
