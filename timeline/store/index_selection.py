"""Ways to rows: by which index PostgreSQL finds the tasks of a question, so that it reads no tasks of others on the way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import CharField, F, Func, QuerySet
from django.db.models.lookups import Exact, In, StartsWith
from django.db.models.sql.where import AND, OR, WhereNode

from timeline.lifecycle import ReasonCode, State
from timeline.models.entities import EntityRef
from timeline.models.first_rows import all_of, column_of
from timeline.registry import registry
from timeline.store.bounded_counts import DETAIL, KIND
from timeline.store.task_key_stats import task_keys_there

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


MOST_NAMED: Final = 5000  # Up to so many entities are looked for one by one; for more, rows of all entities are read.
_NEVER_NULL: Final = {"entity_label", "entity_id", "task_key"}

Names = frozenset[EntityRef]

MOST_KINDS: Final = 64  # Up to so many kinds are looked for separately; of more, all rows are read state by state.
ALL: Final = 2**40  # A limit that is never reached. A query with a limit is executed for each pair.
USUAL: Final = ("", ReasonCode.DONE.value)  # The reasons of most rows that were not cancelled.
# For queries that name their entities: with this expression, PostgreSQL does not prefer an index of states to that of entities.
_STATE: Final = Func(F("state"), template="(%(expressions)s || '')", output_field=CharField())


class Part(NamedTuple):
    """Some of the tasks of a question, and the entities that they name; None: any. No task is in two parts."""

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
            return not _is_true(condition, task_key, negated=False)
        if condition.connector in (AND, OR):
            parts = (_lets(part, task_key) for part in condition.children)
            return all(parts) if condition.connector == AND else any(parts)
        return True
    told = _told(condition, task_key)
    return True if told is None else told


def _is_true(condition: Any, task_key: str, *, negated: bool = True) -> bool:
    """Whether a condition holds for all rows of this kind. ``negated``: False to ignore a negation."""
    if isinstance(condition, WhereNode):
        if condition.negated and negated:
            inner = WhereNode(condition.children, condition.connector)
            return not _lets(inner, task_key)
        if condition.connector in (AND, OR):
            parts = (_is_true(part, task_key) for part in condition.children)
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


class Way(NamedTuple):
    """Rows looked for by pairs of texts, each pair separately; ``KIND`` and ``DETAIL`` stand for them in the query."""

    rows: ScheduledTaskQuerySet
    pairs: Sequence[tuple[str, str]]
    by_entity: bool = False

    def sql(self, rows: QuerySet[Any, Any], using: str) -> tuple[str, list[Any]] | None:
        """The text that finds the rows, for ``AS found (…)``; None: no rows. ``rows`` need a limit, or are joined otherwise."""
        try:
            sql, parameters = rows.query.get_compiler(using).as_sql()
        except EmptyResultSet:
            return None  # The query can find nothing: the one who asks may see none of these rows.
        if not self.pairs:
            return None
        kinds, details = zip(*self.pairs, strict=True)
        asked = "unnest(%s::text[], %s::text[]) AS asked (kind, detail)"
        return f"{asked} CROSS JOIN LATERAL ({sql})", [list(kinds), list(details), *parameters]


class Ways(NamedTuple):
    """Ways to the tasks of a question: by pairs, or state by state in the indexes of states. No task is found on two ways."""

    looked_for: list[Way]
    walked: list[ScheduledTaskQuerySet]


NOWHERE: Final = Ways([], [])


class KindsThere:
    """The kinds of tasks in a database. They are read once, at the first call."""

    def __init__(self, using: str, known: Collection[str] | None = None) -> None:
        self._using, self._known = using, known

    def __call__(self) -> Collection[str]:
        """The kinds."""
        if self._known is None:
            self._known = task_keys_there(self._using)
        return self._known


def can_look_for_each(using: str) -> bool:
    """Whether the database can look for each pair separately, in one statement."""
    return connections[using].features.supports_slicing_ordering_in_compound


def ways_to(tasks: ScheduledTaskQuerySet, states: Collection[str], kinds: Callable[[], Collection[str]]) -> Ways:
    """
    Choose the ways to the tasks of a question in some states, on PostgreSQL: by its few entities, or a rare reason, or kind
    and state. If the time of the end is given, the index of states is better.
    """
    ways = Ways([], [])
    for part in parts_of(tasks):
        looked_for = _way_of(part, sorted(states), kinds)
        if looked_for is None:
            ways.walked.append(part.tasks)
        else:
            ways.looked_for.extend(looked_for)
    return ways


def _way_of(part: Part, states: list[str], kinds: Callable[[], Collection[str]]) -> list[Way] | None:
    tasks = part.tasks
    if part.names is not None:
        named = tasks.filter(In(_STATE, states), entity_label=KIND, entity_id=DETAIL)
        return [Way(named, sorted(part.names), by_entity=True)]
    labels = values_named(tasks, "entity_label")
    if labels is not None and not labels:
        return []  # About entities of two models at once: there are none.
    if names_key(tasks):
        return [Way(tasks.filter(In(_STATE, states)), [("", "")])]
    if _is_rare(values_named(tasks, "reason_code")):
        return list(_ways_by_reason(tasks, states, kinds))
    if asks_for(tasks, "finished_at") or not asks_for(tasks, "task_key"):
        return None
    asked = _kinds_of(tasks, kinds)
    if values_named(tasks, "task_key") is None and not len(asked) < min(len(kinds()), MOST_KINDS + 1):
        return None  # All kinds, or too many: they are read together.
    if not _are_about(asked, labels):
        return None  # If a kind is about other entities, all its rows would be read to find one.
    return [Way(tasks.filter(task_key=KIND, state=DETAIL), [(kind, state) for kind in asked for state in states])]


def _ways_by_reason(
    tasks: ScheduledTaskQuerySet, states: list[str], kinds: Callable[[], Collection[str]]
) -> Iterator[Way]:
    """Two indexes have reasons: one has cancelled tasks, by kind; the other has all other tasks without the usual reasons."""
    if State.CANCELLED in states:
        pairs = [(kind, "") for kind in _kinds_of(tasks, kinds)]
        yield Way(tasks.filter(task_key=KIND, state=State.CANCELLED), pairs)
    others = [("", state) for state in states if state != State.CANCELLED]
    if others:
        rest = tasks.exclude(state=State.CANCELLED).exclude(reason_code__in=USUAL)  # As the index has it.
        yield Way(rest.filter(state=DETAIL), others)


def _is_rare(reasons: set[str] | None) -> bool:
    return reasons is not None and len(reasons) == 1 and reasons.isdisjoint(USUAL)


def _are_about(kinds: Collection[str], labels: set[str] | None) -> bool:
    """Whether these kinds of tasks may be about entities of these models, by their declarations."""
    declared = {known.name: known.label for known in registry}
    timelines = {kind.partition(".")[0] for kind in kinds}
    return labels is None or all(declared.get(name) in (None, *labels) for name in timelines)


def _kinds_of(tasks: ScheduledTaskQuerySet, kinds: Callable[[], Collection[str]]) -> list[str]:
    named = values_named(tasks, "task_key")
    return [kind for kind in sorted(kinds() if named is None else named) if may_be_of(tasks, kind)]
