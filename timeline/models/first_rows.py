"""
The first of very many tasks, on SQLite, which does not know that only these are wanted: the statement leaves it one index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from django.db.models import F, Lookup, Q, QuerySet
from django.db.models.expressions import Col
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual, StartsWith
from django.db.models.sql.where import AND, WhereNode

from timeline.lifecycle import FINAL, OPEN
from timeline.timing import EARLIEST, LATEST

Tasks = TypeVar("Tasks", bound=QuerySet[Any])

FEW: Final = 500  # Up to so many rows are sorted; for more, an index is read in order.
_KEYS: Final = {"id", "entity_id", "run", "cause", "previous"}


class InStates(Lookup):
    """
    ``state IN (…)`` in the text of the statement, sorted: SQLite uses an index only for exactly its condition.

    It is a lookup, since Django 6.1 compares all other kinds of conditions on SQLite with a value.
    """

    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        column, parameters = self.process_lhs(compiler, connection)
        words = ", ".join(f"'{other}'" for other in sorted(OPEN if self.rhs in OPEN else FINAL))
        return f"{column} IN ({words})", parameters


def in_states(tasks: Tasks, states: Sequence[str]) -> Tasks:
    """
    Narrow tasks to these (sorted) states so that the first are found fast; for a timeline, in two statements.

    The result may be a union: it can only be ordered by ``scheduled_at`` and key, and cut.
    """
    conditions = [part for part in all_of(tasks.query.where) if not isinstance(part, WhereNode)]
    if names_rows(tasks.query.where) or any(_is_one(part, "entity_label") for part in conditions):
        return tasks.filter(state__in=states)
    # Such an index has the states, and then the time.
    of_task = any(_is_one(part, "task_key") for part in conditions)
    if not of_task and (few := _few_of_timeline(tasks, conditions)) is not None:
        return tasks.filter(pk__in=few, state__in=states)
    indexes = [[] if of_task else [InStates(F("state"), state)] for state in states]
    parts = [tasks.filter(*index, state=state) for index, state in zip(indexes, states, strict=True)]
    for part in parts:
        _begin_with(part, _between(conditions))
    return parts[0].union(*parts[1:], all=True) if len(parts) > 1 else next(iter(parts), tasks.none())


def names_rows(condition: Any) -> bool:
    """Whether a condition names all its rows by keys: their own, or those of entities, runs, causes or predecessors."""
    if isinstance(condition, WhereNode):
        told = (names_rows(part) for part in condition.children)
        return not condition.negated and (any(told) if condition.connector == AND else all(told))
    return isinstance(condition, Exact | In) and column_of(condition) in _KEYS


def _between(conditions: list[Any]) -> Q:
    """The narrowest limits of time in the conditions; else limits that all rows keep: without, SQLite would sort each state."""
    timed = [part for part in conditions if column_of(part) == "scheduled_at" and isinstance(part.rhs, datetime)]
    since = max([EARLIEST, *(part.rhs for part in timed if isinstance(part, GreaterThan | GreaterThanOrEqual))])
    until = min([LATEST, *(part.rhs for part in timed if isinstance(part, LessThan | LessThanOrEqual))])
    return Q(scheduled_at__gte=since, scheduled_at__lte=until)


def _begin_with(tasks: QuerySet[Any], condition: Q) -> None:
    tasks.query.where.children.insert(0, tasks.query.build_where(condition))


def all_of(condition: WhereNode) -> Iterator[Any]:
    """The conditions that each row has to fulfil. Alternatives and negations are not divided."""
    if condition.negated or (condition.connector != AND and len(condition.children) > 1):
        yield condition
        return
    for part in condition.children:
        yield from all_of(part) if isinstance(part, WhereNode) else [part]


def _few_of_timeline(tasks: QuerySet[Any], conditions: list[Any]) -> list[Any] | None:
    """Read the keys of all rows of the timeline in the question. None: it has many, or the question has none."""
    for part in conditions:
        if isinstance(part, StartsWith) and column_of(part) == "task_key":
            first = str(part.rhs)
            beyond = first[:-1] + chr(ord(first[-1]) + 1)
            rows = tasks.model._base_manager.using(tasks.db).filter(task_key__gte=first, task_key__lt=beyond)
            keys = list(rows.values_list("pk", flat=True)[: FEW + 1])
            return keys if len(keys) <= FEW else None
    return None


def _is_one(condition: Any, column: str) -> bool:
    one_of_list = isinstance(condition, In) and isinstance(condition.rhs, list) and len(condition.rhs) == 1
    return (one_of_list or isinstance(condition, Exact)) and column_of(condition) == column


def column_of(condition: Any) -> str | None:
    """The name of the column that a condition is about; None: it is not about a single column."""
    side = getattr(condition, "lhs", None)
    return str(side.target.name) if isinstance(side, Col) else None
