"""The first tasks of several kinds, where others than theirs are not to be read on the way to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

from timeline.store.counting import DETAIL, KIND
from timeline.store.gathering import gather
from timeline.store.guiding import guided
from timeline.store.kinds import task_keys_there

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


def page_of_kinds(
    tasks: ScheduledTaskQuerySet, *, task: str, timeline: str, first: First, most: int
) -> list[ScheduledTask]:
    """
    Read the first tasks of one kind, or of a timeline, in some states: in order of their time, and then of their keys.

    On PostgreSQL each kind and state is looked for by itself, so that a kind of which a state has none costs nothing there.

    Args:
        tasks: Those of the kind or timeline, narrowed down as is asked.
        task, timeline: Key of the kind; name of the timeline, if no kind is named; both empty: of all.
        first: In which states, and which of them.
        most: So many at most.
    """
    if not (task or timeline) or not can_look_for_each(tasks.db):
        return list(tasks.first_of(first.states, most, latest=first.latest))
    keys = [task] if task else [key for key in task_keys_there(tasks.db) if key.startswith(f"{timeline}.")]
    [found] = first_of_kinds(tasks, keys, [first], most, ties=("-pk",) if first.latest else ("pk",))
    return found[:most]


def first_of_kinds(
    tasks: ScheduledTaskQuerySet,
    task_keys: Collection[str],
    asked: Sequence[First],
    most: int,
    *,
    also: Callable[[ScheduledTaskQuerySet], ScheduledTaskQuerySet] = lambda tasks: tasks,
    ties: tuple[str, ...] = (),
) -> list[list[ScheduledTask]]:
    """
    Read the earliest tasks of these kinds in some states (or the latest), in order of their time and with their runs, in one
    statement for all that is asked.

    PostgreSQL finds each kind and state by itself in the index of kinds. By states alone, as ``first_of``, it would read what
    everybody has in a state until there are so many: all of it, where there are none. SQLite is asked as by ``first_of``, in
    two statements.

    Of those that are due at the same moment, it is any, where they are more than are asked for.

    Args:
        tasks: Those to look among, whose conditions may be dear to ask of each row.
        task_keys: The kinds.
        asked: Which of them: no state twice.
        most: So many at most of each that is asked for.
        also: Says what else is read of them.
        ties: In which order are those that are due at the same moment; left out, it may be any.
    """
    if can_look_for_each(tasks.db):
        found: Q | RawSQL | None = _keys_where_states_are_walked(tasks, sorted(task_keys), asked, most, ties)
    else:
        found = _keys_by_states(tasks, sorted(task_keys), asked, most)
    read: list[ScheduledTask] = []
    if found is not None:
        rows = tasks.model._default_manager.using(tasks.db).filter(found).select_related("run")
        with guided(WALKED, using=tasks.db):
            read = list(also(rows))
    return [
        sorted((task for task in read if task.state in first.states), key=_moment, reverse=first.latest)
        for first in asked
    ]


def can_look_for_each(using: str) -> bool:
    """Whether the database looks for each kind and state by itself, in one statement."""
    return connections[using].features.supports_slicing_ordering_in_compound


def _keys_by_states(tasks: ScheduledTaskQuerySet, task_keys: Sequence[str], asked: Sequence[First], most: int) -> Q:
    rows = tasks.with_handler(task_keys)
    sides = [rows.first_of(sorted(first.states), most, latest=first.latest) for first in asked]
    found = gather([side.values_list("pk", "scheduled_at") for side in sides], using=tasks.db)
    return Q(pk__in={key for side in found for key, _at in side})


def _keys_where_states_are_walked(
    tasks: ScheduledTaskQuerySet, task_keys: Sequence[str], asked: Sequence[First], most: int, ties: tuple[str, ...]
) -> RawSQL | None:
    parts, parameters = list[str](), list[Any]()
    for first in asked:
        try:
            sql, values = _first_of(tasks, task_keys, first, most, ties)
        except EmptyResultSet:
            continue  # Whoever asks may see none of them, or asks for no kind.
        parts.append(f"(SELECT found.id {sql})")
        parameters += values
    if not parts:
        return None
    # As an array the keys are found first, however many PostgreSQL expects; then each by the primary key.
    sql = f"timeline_scheduledtask.id = ANY(ARRAY({' UNION ALL '.join(parts)}))"
    return RawSQL(sql, parameters, output_field=BooleanField())  # noqa: S611 (our own words)


def _moment(task: ScheduledTask) -> tuple[datetime, UUID]:
    return task.scheduled_at, task.pk


def _first_of(
    tasks: ScheduledTaskQuerySet, task_keys: Sequence[str], first: First, most: int, ties: tuple[str, ...]
) -> tuple[str, list[Any]]:
    """
    Write where the first of each kind and state are found, and in which order; with its parameters.

    Raises:
        EmptyResultSet: if there can be none.
    """
    pairs = [text for key in task_keys for state in sorted(first.states) for text in (key, state)]
    if not pairs:
        raise EmptyResultSet
    alike = tasks.filter(task_key=KIND, state=DETAIL).order_by(
        "-scheduled_at" if first.latest else "scheduled_at", *ties
    )
    sql, parameters = alike.values("pk", "scheduled_at")[:most].query.get_compiler(tasks.db).as_sql()
    asked, way = ", ".join(["(%s, %s)"] * (len(pairs) // 2)), "DESC" if first.latest else "ASC"
    found = (
        f"FROM (VALUES {asked}) AS asked (kind, detail)"
        f" CROSS JOIN LATERAL ({sql}) AS found (id, at) ORDER BY found.at {way}, found.id {way} LIMIT %s"
    )
    return found, [*pairs, *parameters, most]
