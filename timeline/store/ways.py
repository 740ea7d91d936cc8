"""Ways to rows: by which index PostgreSQL finds the tasks of a question, so that it reads no tasks of others on the way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import CharField, F, Func, QuerySet
from django.db.models.lookups import In

from timeline.lifecycle import ReasonCode, State
from timeline.models.parts import Part, asks_for, may_be_of, names_key, parts_of, values_named
from timeline.registry import registry
from timeline.store.counting import DETAIL, KIND
from timeline.store.kinds import task_keys_there

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

MOST_KINDS: Final = 64  # Up to so many kinds are looked for separately; of more, all rows are read state by state.
ALL: Final = 2**40  # A limit that is never reached. A query with a limit is executed for each pair.
USUAL: Final = ("", ReasonCode.DONE.value)  # The reasons of most rows that were not cancelled.
# For queries that name their entities: with this expression, PostgreSQL does not prefer an index of states to that of entities.
_STATE: Final = Func(F("state"), template="(%(expressions)s || '')", output_field=CharField())


class Way(NamedTuple):
    """
    Rows that are looked for by pairs of texts, each pair separately.

    Args:
        rows: The query, with ``KIND`` and ``DETAIL`` in its conditions.
        pairs: The values of these.
        by_entity: Whether the pairs are entities.
    """

    rows: ScheduledTaskQuerySet
    pairs: Sequence[tuple[str, str]]
    by_entity: bool = False

    def sql(self, rows: QuerySet[Any, Any], using: str) -> tuple[str, list[Any]] | None:
        """
        The text that finds the rows, for use after ``FROM``. The caller adds a name for its result (``AS found (…)``). None:
        there are no rows.

        Args:
            rows: The query, with its order, limit and columns. Without a limit, PostgreSQL might join it in another way.
            using: Database alias.
        """
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
    """
    Ways to the tasks of a question. No task is found on two ways.

    Args:
        looked_for: Parts that are looked for by pairs.
        walked: Parts that are read state by state, by the indexes of states.
    """

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
    Choose the ways to the tasks of a question in some states, on PostgreSQL.

    If it is about few entities, the tasks are looked for by these. If it is about a few kinds, they are looked for by kind and
    state, unless the time of the end is given, for which the index of states is better. If a rare reason is given, they are
    found by this.

    Args:
        tasks: The question, in any state.
        states: The states.
        kinds: Gives the kinds of tasks that exist.
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
