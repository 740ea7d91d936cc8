"""Which kinds of tasks exist, and what is known of their tasks."""

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
from timeline.store.kept_statements import READY_KINDS


class First(NamedTuple):
    """
    The first of the available tasks of a kind.

    Args:
        priority: Smaller is more urgent.
        due_at: When it was due; None on SQLite.
        on_hold: Whether entities are on hold, so that some tasks of the kind may be skipped.
    """

    priority: int
    due_at: datetime | None
    on_hold: bool = False


class Kind(NamedTuple):
    """
    The present state of a kind.

    Args:
        tasks: How many tasks are claimed and not started.
        lately: How many of these were sent recently, and not handed back since.
        seconds: How long its handler takes for one task, as workers measured it; None: nobody has run it.
    """

    tasks: int
    lately: int
    seconds: float | None


def task_keys_there(using: str) -> list[str]:
    """The different task keys of the rows of a database. One statement, with one look in an index for each key."""
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("task_keys_there"))
        return [task_key for [task_key] in cursor.fetchall()]


def timelines_there(using: str) -> list[str]:
    """The different timelines of the runs of a database, open or ended. One statement, with one look in an index for each."""
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("timelines_there"))
        return [timeline for [timeline] in cursor.fetchall()]


def ready_kinds(task_keys: Sequence[str], *, using: str) -> dict[str, First]:
    """
    Tell which of these kinds have available tasks that no hold covers. One statement, with one look in an index for each kind.
    If anything is on hold, a second statement reads what; if entities are on hold, a third skips their tasks.

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
        if dialect.has_trigger_functions and not asked:
            cursor.execute(READY_KINDS.call("*"), parameters)
        else:
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
    The present state of these kinds, by one statement.

    Args:
        task_keys: Keys of the kinds.
        lately: Tasks were sent recently if it was no longer ago than this.
        leases_valid_at: A machine time at which no lease had expired; None: not known. All leases end later, so that the part
            of the index before it is not read.
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
    Read tasks of each kind that have ended, the last due of each state, to see how they ended. One statement.

    Args:
        task_keys: The kinds.
        states: Final states.
        most: How many tasks at most, for each kind and state.
        using: Database alias.

    Returns:
        Tasks with key, state, reason code, start and end only, in no fixed order.
    """
    dialect = dialect_of(using)
    asked = {"task_keys": dialect.list_of(task_keys), "states": dialect.list_of(sorted(states)), "most": most}
    return list(ScheduledTask.objects.using(using).raw(dialect.sql("recent_ends"), asked)) if task_keys else []
