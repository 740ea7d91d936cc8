"""Ways to rows: by which index PostgreSQL finds the tasks of a question, so that it reads none of others on the way."""

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

MOST_KINDS: Final = 64  # So many kinds are looked for one by one; of more, the rows of all are walked by state.
ALL: Final = 2**40  # A limit that is none: what has one is looked for pair by pair.
USUAL: Final = ("", ReasonCode.DONE.value)  # Reasons of most that was not cancelled.
# Of a part whose entities are named, so that no index of states seems to be as good as that of entities.
_STATE: Final = Func(F("state"), template="(%(expressions)s || '')", output_field=CharField())


class Way(NamedTuple):
    """
    Rows that are looked for by pairs of texts, each pair by itself.

    Args:
        rows: Their query, with ``KIND`` and ``DETAIL`` in its conditions.
        pairs: What these stand for.
        by_entity: Whether they are entities.
    """

    rows: ScheduledTaskQuerySet
    pairs: Sequence[tuple[str, str]]
    by_entity: bool = False

    def sql(self, rows: QuerySet[Any, Any], using: str) -> tuple[str, list[Any]] | None:
        """
        Write where they are found: to be put behind ``FROM``, as ``asked`` and ``found``. None: there are none.

        Args:
            rows: The query, ordered, cut and narrowed to columns. Without a limit PostgreSQL would join it as it likes.
            using: Database alias.
        """
        try:
            sql, parameters = rows.query.get_compiler(using).as_sql()
        except EmptyResultSet:
            return None  # Whoever asks may see none of them.
        if not self.pairs:
            return None
        kinds, details = zip(*self.pairs, strict=True)
        asked = "unnest(%s::text[], %s::text[]) AS asked (kind, detail)"
        return f"{asked} CROSS JOIN LATERAL ({sql})", [list(kinds), list(details), *parameters]


class Ways(NamedTuple):
    """
    Ways to the tasks of a question; none of them is found on two.

    Args:
        looked_for: What is looked for by pairs.
        walked: What is read state by state, each by its index.
    """

    looked_for: list[Way]
    walked: list[ScheduledTaskQuerySet]


NOWHERE: Final = Ways([], [])


class KindsThere:
    """The kinds of tasks that a database has, read when somebody asks for them, once."""

    def __init__(self, using: str, known: Collection[str] | None = None) -> None:
        self._using, self._known = using, known

    def __call__(self) -> Collection[str]:
        """Read them."""
        if self._known is None:
            self._known = task_keys_there(self._using)
        return self._known


def can_look_for_each(using: str) -> bool:
    """Whether the database looks for each pair by itself, in one statement."""
    return connections[using].features.supports_slicing_ordering_in_compound


def ways_to(tasks: ScheduledTaskQuerySet, states: Collection[str], kinds: Callable[[], Collection[str]]) -> Ways:
    """
    Choose the ways to the tasks of a question in some states, on PostgreSQL.

    What is about few entities is looked for by these. What is of a few kinds is looked for by kind and state, unless it is
    narrowed by when it ended, which the index of states tells. What has a certain reason is found by that.

    Args:
        tasks: The question, in any state.
        states: In which states.
        kinds: Gives the kinds of tasks there are.
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
        return []  # About two kinds of entities at once.
    if names_key(tasks):
        return [Way(tasks.filter(In(_STATE, states)), [("", "")])]
    if _is_rare(values_named(tasks, "reason_code")):
        return list(_ways_by_reason(tasks, states, kinds))
    if asks_for(tasks, "finished_at") or not asks_for(tasks, "task_key"):
        return None
    asked = _kinds_of(tasks, kinds)
    if values_named(tasks, "task_key") is None and not len(asked) < min(len(kinds()), MOST_KINDS + 1):
        return None  # All kinds, or too many: they are walked together.
    if not _are_about(asked, labels):
        return None  # Of a kind about others, all rows would be read in search of one.
    return [Way(tasks.filter(task_key=KIND, state=DETAIL), [(kind, state) for kind in asked for state in states])]


def _ways_by_reason(
    tasks: ScheduledTaskQuerySet, states: list[str], kinds: Callable[[], Collection[str]]
) -> Iterator[Way]:
    """Two indexes have reasons: one those of what was cancelled, by kind; one those of all else, but for the usual."""
    if State.CANCELLED in states:
        pairs = [(kind, "") for kind in _kinds_of(tasks, kinds)]
        yield Way(tasks.filter(task_key=KIND, state=State.CANCELLED), pairs)
    others = [("", state) for state in states if state != State.CANCELLED]
    if others:
        rest = tasks.exclude(state=State.CANCELLED).exclude(reason_code__in=USUAL)  # As the index says it.
        yield Way(rest.filter(state=DETAIL), others)


def _is_rare(reasons: set[str] | None) -> bool:
    return reasons is not None and len(reasons) == 1 and reasons.isdisjoint(USUAL)


def _are_about(kinds: Collection[str], labels: set[str] | None) -> bool:
    """Whether these kinds of tasks may be about entities of these models, as far as they are declared."""
    declared = {known.name: known.label for known in registry}
    timelines = {kind.partition(".")[0] for kind in kinds}
    return labels is None or all(declared.get(name) in (None, *labels) for name in timelines)


def _kinds_of(tasks: ScheduledTaskQuerySet, kinds: Callable[[], Collection[str]]) -> list[str]:
    named = values_named(tasks, "task_key")
    return [kind for kind in sorted(kinds() if named is None else named) if may_be_of(tasks, kind)]
