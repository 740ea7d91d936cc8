"""Count the tasks of a question by state: all of them, or up to a limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from django.db import connections
from django.db.models import Count

from timeline.store.guiding import AS_IT_IS, execute_guided, guided
from timeline.store.ways import ALL, NOWHERE, can_look_for_each, ways_to

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

# If PostgreSQL expects few rows and there are very many, it would sort them in a file to count those of a few states.
_UNSORTED: Final = {**AS_IT_IS, "enable_sort": "off"}


def counts_by_state(
    tasks: ScheduledTaskQuerySet,
    states: Collection[str],
    kinds: Callable[[], Collection[str]],
    *,
    most: int = ALL,
) -> Counter[str]:
    """
    Count the tasks of a question in each of some states. Tasks of others are not read on the way; see ``ways_to``.

    Args:
        tasks: The question.
        states: The states.
        kinds: Gives the kinds of tasks that exist.
        most: If the tasks are found by kind or entity, at most so many of each pair are counted, and one more.
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
