"""The first tasks of several kinds, where others than theirs are not to be read on the way to them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from django.core.exceptions import EmptyResultSet
from django.db import connections

from timeline.models.among import Among
from timeline.store.counting import DETAIL, KIND
from timeline.store.guiding import execute_guided
from timeline.store.returning import read_models

if TYPE_CHECKING:
    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet

# What is dear to ask of each row is asked of as few as there are before so many are found: of all of a kind, to sort them
# afterwards, if PostgreSQL thinks that they are few.
WALKED: Final = {"enable_sort": "off", "enable_bitmapscan": "off", "jit": "off"}


def first_of_kinds(
    tasks: ScheduledTaskQuerySet,
    task_keys: Collection[str],
    states: Collection[str],
    most: int,
    *,
    latest: bool = False,
) -> list[ScheduledTask]:
    """
    Read the earliest tasks of these kinds in these states (or the latest), in order of their time, in two statements.

    PostgreSQL finds each kind and state by itself in the index of kinds. By states alone, as ``first_of``, it would read what
    everybody has in a state until there are so many: all of it, where there are none. SQLite is asked as by ``first_of``.

    Of those that are due at the same moment, it is any, where they are more than are asked for.

    Args:
        tasks: Those to look among, whose conditions may be dear to ask of each row.
        task_keys: The kinds.
        states: The states.
        most: So many at most.
        latest: Whether to read the latest, the latest first.
    """
    connection = connections[tasks.db]
    if not connection.features.supports_slicing_ordering_in_compound:
        return list(tasks.with_handler(sorted(task_keys)).first_of(states, most, latest=latest))
    pairs = [text for key in sorted(task_keys) for state in sorted(states) for text in (key, state)]
    alike = tasks.filter(task_key=KIND, state=DETAIL).order_by("-scheduled_at" if latest else "scheduled_at")
    try:
        sql, parameters = alike.values("pk", "scheduled_at")[:most].query.get_compiler(tasks.db).as_sql()
    except EmptyResultSet:
        return []  # Whoever asks may see none of them.
    if not pairs:
        return []
    asked, way = ", ".join(["(%s, %s)"] * (len(pairs) // 2)), "DESC" if latest else "ASC"
    found = (
        f"WITH asked (kind, detail) AS (VALUES {asked}) SELECT found.id FROM asked"  # noqa: S608 (Django wrote the inner one)
        f" CROSS JOIN LATERAL ({sql}) AS found (id, at) ORDER BY found.at {way}, found.id {way} LIMIT %s"
    )
    with connection.cursor() as cursor:
        execute_guided(cursor, found, [*pairs, *parameters, most], settings=WALKED, using=tasks.db)
        keys = [key for [key] in cursor.fetchall()]
    read = {task.pk: task for task in read_models(tasks.model._default_manager.using(tasks.db).filter(Among(keys)))}
    return [read[key] for key in keys if key in read]
