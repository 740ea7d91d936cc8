"""Which kinds of tasks there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from django.db import connections

from timeline.conf import get_settings
from timeline.dialects import Dialect, dialect_of
from timeline.models import ScheduledTask
from timeline.models.statements import narrowed
from timeline.store.guiding import IN_ORDER, execute_guided
from timeline.store.holds import NOTHING_ON_HOLD, on_hold


class First(NamedTuple):
    """
    Of a kind's available tasks the one to be run first.

    Args:
        priority: Smaller is more urgent.
        due_at: When it was due; None on SQLite.
        on_hold: Whether entities are on hold, so that others of the kind may be passed over.
    """

    priority: int
    due_at: datetime | None
    on_hold: bool = False


class Kind(NamedTuple):
    """
    How things are with a kind.

    Args:
        tasks: How many are on their way, claimed and not started.
        lately: How many of these were sent lately, and not handed back since.
        seconds: How long its handler takes for one, as workers saw it; None: nobody has run it.
    """

    tasks: int
    lately: int
    seconds: float | None


def task_keys_there(using: str) -> list[str]:
    """The different task keys of a database's rows, by one statement: a probe of an index for each."""
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("task_keys_there"))
        return [task_key for [task_key] in cursor.fetchall()]


def timelines_there(using: str) -> list[str]:
    """The different timelines of a database's runs, open or ended, by one statement: a probe of an index for each."""
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("timelines_there"))
        return [timeline for [timeline] in cursor.fetchall()]


def ready_kinds(task_keys: Sequence[str], *, using: str) -> dict[str, First]:
    """
    Tell which of these kinds have available tasks that may be started: nothing holds them. One probe of an index a kind, in
    one statement. Only where something is on hold, a second reads what; where entities are, a third passes over their tasks.

    Returns:
        Task key → the first of its available tasks.
    """
    rows = _ready(task_keys, frozenset(), using)
    held = on_hold(using=using) if rows and rows[0][-1] else NOTHING_ON_HOLD
    if held.has_entities:
        rows = _ready(task_keys, frozenset({"on_hold"}), using)
    return {
        task_key: First(priority, due_at, held.has_entities)
        for task_key, priority, due_at, _some_on_hold in rows
        if not (held.targets and held.covers(task_key))
    }


def _ready(task_keys: Sequence[str], asked: frozenset[str], using: str) -> list[tuple[str, int, datetime | None, bool]]:
    dialect = dialect_of(using)
    with connections[using].cursor() as cursor:
        parameters = {"task_keys": dialect.list_of(task_keys)}
        execute_guided(cursor, _ready_sql(dialect, asked), parameters, settings=IN_ORDER, using=using)
        rows: list[tuple[str, int, datetime | None, bool]] = cursor.fetchall()
    return rows


@cache
def _ready_sql(dialect: Dialect, asked: frozenset[str]) -> str:
    return narrowed(dialect.sql("ready_kinds"), asked)


def look_at_kinds(
    task_keys: Sequence[str], *, lately: timedelta, leases_valid_at: datetime | None = None, using: str
) -> dict[str, Kind]:
    """
    Tell how things are with these kinds, in one statement.

    Args:
        task_keys: Of the kinds.
        lately: What was sent so long ago, or less, was sent lately.
        leases_valid_at: Machine time at which no lease had run out, if that is known: then all end later, and the part of the
            index before it is not read.
        using: Database alias.
    """
    dialect = dialect_of(using)
    parameters: dict[str, Any] = {
        "task_keys": dialect.list_of(task_keys),
        "lately": dialect.ago(lately),
        "lease": dialect.ago(get_settings().LEASE),
        "leases_valid_at": leases_valid_at,
    }
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("kinds"), parameters)
        return {task_key: Kind(*found) for task_key, *found in cursor.fetchall()}


def recent_ends(task_keys: Sequence[str], states: Iterable[str], most: int, *, using: str) -> list[ScheduledTask]:
    """
    Read how tasks of each kind ended that were due last: some of each state, in one statement.

    Args:
        task_keys: The kinds.
        states: Final ones.
        most: So many of each kind and state.
        using: Database alias.

    Returns:
        Tasks of which only key, state, reason code, start and end are read, in no order.
    """
    dialect = dialect_of(using)
    asked = {"task_keys": dialect.list_of(task_keys), "states": dialect.list_of(sorted(states)), "most": most}
    return list(ScheduledTask.objects.using(using).raw(dialect.sql("recent_ends"), asked)) if task_keys else []
