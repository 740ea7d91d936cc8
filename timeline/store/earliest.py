"""The first tasks of several kinds, where others than theirs are not to be read on the way to them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connections

from timeline.models.among import Among
from timeline.store.counting import DETAIL, KIND
from timeline.store.guiding import execute_guided
from timeline.store.returning import read_models

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet

# What is dear to ask of each row is asked of as few as there are before so many are found: of all of a kind, to sort them
# afterwards, if PostgreSQL thinks that they are few.
WALKED: Final = {"enable_sort": "off", "enable_bitmapscan": "off", "jit": "off"}


class First(NamedTuple):
    """
    What is asked for of each kind.

    Args:
        states: The states.
        latest: Whether to read the latest, the latest first; else the earliest.
    """

    states: Collection[str]
    latest: bool = False


def first_of_kinds(
    tasks: ScheduledTaskQuerySet, task_keys: Collection[str], asked: Sequence[First], most: int
) -> list[list[ScheduledTask]]:
    """
    Read the earliest tasks of these kinds in some states (or the latest), in order of their time, in two statements for all
    that is asked.

    PostgreSQL finds each kind and state by itself in the index of kinds. By states alone, as ``first_of``, it would read what
    everybody has in a state until there are so many: all of it, where there are none. SQLite is asked as by ``first_of``.

    Of those that are due at the same moment, it is any, where they are more than are asked for.

    Args:
        tasks: Those to look among, whose conditions may be dear to ask of each row.
        task_keys: The kinds.
        asked: Which of them.
        most: So many at most of each that is asked for.
    """
    connection = connections[tasks.db]
    if not connection.features.supports_slicing_ordering_in_compound:
        rows = tasks.with_handler(sorted(task_keys))
        return [list(rows.first_of(states, most, latest=latest)) for states, latest in asked]
    parts, parameters = list[str](), list[Any]()
    for place, first in enumerate(asked):
        try:
            sql, values = _first_of(tasks, sorted(task_keys), first, most)
        except EmptyResultSet:
            continue  # Whoever asks may see none of them, or asks for no kind.
        parts.append(f"(SELECT {place}, found.id {sql})")
        parameters += values
    found: list[list[UUID]] = [[] for _first in asked]
    if parts:
        with connection.cursor() as cursor:
            execute_guided(cursor, " UNION ALL ".join(parts), parameters, settings=WALKED, using=tasks.db)
            for place, key in cursor.fetchall():
                found[place].append(key)
    rows = tasks.model._default_manager.using(tasks.db).filter(Among(key for keys in found for key in keys))
    read = {task.pk: task for task in read_models(rows)}
    return [
        sorted((read[key] for key in keys if key in read), key=_moment, reverse=first.latest)
        for first, keys in zip(asked, found, strict=True)
    ]


def _moment(task: ScheduledTask) -> tuple[datetime, UUID]:
    return task.scheduled_at, task.pk


def _first_of(tasks: ScheduledTaskQuerySet, task_keys: Sequence[str], first: First, most: int) -> tuple[str, list[Any]]:
    """
    Write where the first of each kind and state are found, and in which order; with its parameters.

    Raises:
        EmptyResultSet: if there can be none.
    """
    pairs = [text for key in task_keys for state in sorted(first.states) for text in (key, state)]
    if not pairs:
        raise EmptyResultSet
    alike = tasks.filter(task_key=KIND, state=DETAIL).order_by("-scheduled_at" if first.latest else "scheduled_at")
    sql, parameters = alike.values("pk", "scheduled_at")[:most].query.get_compiler(tasks.db).as_sql()
    asked, way = ", ".join(["(%s, %s)"] * (len(pairs) // 2)), "DESC" if first.latest else "ASC"
    found = (
        f"FROM (VALUES {asked}) AS asked (kind, detail)"
        f" CROSS JOIN LATERAL ({sql}) AS found (id, at) ORDER BY found.at {way}, found.id {way} LIMIT %s"
    )
    return found, [*pairs, *parameters, most]
