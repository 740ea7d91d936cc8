"""
Parts of a question about tasks: one that names few entities, and one of some kinds. Each is found by an index of its own.

They are found in the conditions of a query. It does not matter whether these come from a policy or from the question itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models.lookups import Exact, In, StartsWith
from django.db.models.sql.where import AND, OR, WhereNode

from timeline.models.entities import EntityRef
from timeline.models.walking import all_of, column_of

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

MOST_NAMED: Final = 5000  # Up to so many entities are looked for one by one; for more, rows of all entities are read.
_NEVER_NULL: Final = {"entity_label", "entity_id", "task_key"}

Names = frozenset[EntityRef]


class Part(NamedTuple):
    """
    Some of the tasks of a question.

    Args:
        tasks: The query of these tasks. No task is in two parts.
        names: The entities that they name; None: any.
    """

    tasks: ScheduledTaskQuerySet
    names: Names | None


def parts_of(tasks: ScheduledTaskQuerySet) -> list[Part]:
    """Divide a question, if its rows are of a few entities *or* of some kinds; otherwise it is one part."""
    where = tasks.query.where
    if (names := _names(where)) is not None:
        return [Part(tasks, names)]
    conditions = list(all_of(where))
    for place, condition in enumerate(conditions):
        if not _is_choice(condition):
            continue
        named = [one for one in condition.children if _names(one) is not None and _is_plain(one)]
        others = [one for one in condition.children if one not in named]
        if named and others:
            rest = [*conditions[:place], *conditions[place + 1 :]]
            few = WhereNode(named, OR)
            many = [WhereNode(others, OR), WhereNode([few], AND, negated=True)]
            return [
                Part(_with(tasks, [*rest, few]), _names(few)),
                Part(_with(tasks, [*rest, *many]), None),
            ]
    return [Part(tasks, None)]


def asks_for(tasks: ScheduledTaskQuerySet, column: str) -> bool:
    """Whether any condition is about this column."""
    return any(column_of(leaf) == column for leaf in _leaves(tasks.query.where))


def names_key(tasks: ScheduledTaskQuerySet) -> bool:
    """Whether the question names one task by its primary key."""
    return any(isinstance(part, Exact) and column_of(part) == "id" for part in all_of(tasks.query.where))


def values_named(tasks: ScheduledTaskQuerySet, column: str) -> set[str] | None:
    """The values of a column that a question itself names; None: it names none."""
    return _of_column(tasks.query.where, column)


def may_be_of(tasks: ScheduledTaskQuerySet, task_key: str) -> bool:
    """Whether the question can have tasks of this kind, by its conditions about kinds."""
    return _lets(tasks.query.where, task_key)


def _lets(condition: Any, task_key: str) -> bool:
    """Whether a condition may hold for a row of this kind. A condition that is not about kinds may."""
    if isinstance(condition, WhereNode):
        if condition.negated:
            return not _holds(condition, task_key, negated=False)
        if condition.connector in (AND, OR):
            parts = (_lets(part, task_key) for part in condition.children)
            return all(parts) if condition.connector == AND else any(parts)
        return True
    told = _told(condition, task_key)
    return True if told is None else told


def _holds(condition: Any, task_key: str, *, negated: bool = True) -> bool:
    """Whether a condition holds for all rows of this kind. ``negated``: False to ignore a negation."""
    if isinstance(condition, WhereNode):
        if condition.negated and negated:
            inner = WhereNode(condition.children, condition.connector)
            return not _lets(inner, task_key)
        if condition.connector in (AND, OR):
            parts = (_holds(part, task_key) for part in condition.children)
            return all(parts) if condition.connector == AND else any(parts)
        return False
    return bool(_told(condition, task_key))


def _told(condition: Any, task_key: str) -> bool | None:
    """Whether a kind fulfils a condition; None: the condition is about something else."""
    if _is_never(condition):
        return False
    if column_of(condition) != "task_key":
        return None
    if isinstance(condition, StartsWith) and isinstance(condition.rhs, str):
        return task_key.startswith(condition.rhs)
    named = _values(condition)
    return None if named is None else task_key in named


def _names(condition: Any) -> Names | None:
    """The entities that rows must name for a condition to hold; None: any, or too many."""
    if _is_never(condition):
        return frozenset()
    if not isinstance(condition, WhereNode) or condition.negated or condition.connector not in (AND, OR):
        return None
    if condition.connector == OR and len(condition.children) > 1:
        each = [_names(part) for part in condition.children]
        found = [names for names in each if names is not None]
        return _few(frozenset().union(*found)) if len(found) == len(each) else None
    known = [names for part in condition.children if (names := _names(part)) is not None]
    labels, ids = (_of_column(condition, column) for column in ("entity_label", "entity_id"))
    if labels is not None and ids is not None and len(labels) * len(ids) <= MOST_NAMED:
        known.append(frozenset(EntityRef(label, key) for label in labels for key in ids))
    return min(known, key=len, default=None)


def _few(names: Names) -> Names | None:
    return names if len(names) <= MOST_NAMED else None


def _of_column(condition: WhereNode, column: str) -> set[str] | None:
    """The values that a column may have, by a condition that has to hold in all its parts; None: any."""
    found: set[str] | None = None
    for part in all_of(condition):
        if column_of(part) == column and (values := _values(part)) is not None:
            found = values if found is None else found & values
    return found


def _values(condition: Any) -> set[str] | None:
    """The texts with which a condition compares a column; None: it is another condition."""
    if isinstance(condition, Exact) and isinstance(condition.rhs, str):
        return {condition.rhs}
    if isinstance(condition, In) and isinstance(condition.rhs, list | tuple | set | frozenset):
        values = {value for value in condition.rhs if isinstance(value, str)}
        return values if len(values) == len(set(condition.rhs)) else None
    return None


def _is_never(condition: Any) -> bool:
    """Whether it is an ``IN`` with an empty list, which nothing fulfils."""
    return isinstance(condition, In) and condition.rhs == []


def _is_choice(condition: Any) -> bool:
    return isinstance(condition, WhereNode) and condition.connector == OR and not condition.negated


def _is_plain(condition: Any) -> bool:
    """Whether it is either true or false for each row, and asks nothing of other rows, so that it can be negated."""
    return all(
        column_of(leaf) in _NEVER_NULL and (isinstance(leaf, StartsWith) or _values(leaf) is not None)
        for leaf in _leaves(condition)
    )


def _leaves(condition: Any) -> Iterator[Any]:
    if isinstance(condition, WhereNode):
        for part in condition.children:
            yield from _leaves(part)
    else:
        yield condition


def _with(tasks: ScheduledTaskQuerySet, conditions: list[Any]) -> ScheduledTaskQuerySet:
    changed = tasks.all()
    changed.query.where = WhereNode(conditions, AND)
    return changed
