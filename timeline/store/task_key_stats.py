"""Which kinds of tasks exist, what is known of their tasks, and which of them features keep from running (``Hindrance``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from time import monotonic
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connections

from timeline.dialects import Dialect, dialect_of, narrowed
from timeline.exceptions import UnknownTask
from timeline.hooks import Kept, hooks
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.store.floors import BEGINNING, SLACK, IndexPlace, floor_of, floors_of, note_dead
from timeline.store.kept_statements import READY_KINDS
from timeline.store.transactions import IN_ORDER, execute_guided


class LeftOut(NamedTuple):
    """What all features keep from running."""

    kept: tuple[Kept, ...] = ()

    @property
    def parts(self) -> frozenset[str]:
        """Names of the optional lines of statements that leave out some tasks of a kind."""
        return frozenset().union(*(each.parts for each in self.kept))

    @property
    def is_any(self) -> bool:
        """Whether anything is left out."""
        return any(each.is_any for each in self.kept)

    def covers(self, task_key: str) -> bool:
        """Whether a kind is left out as a whole."""
        return any(each.covers(task_key) for each in self.kept)


NOTHING: Final = LeftOut()


def left_out(*, using: str) -> LeftOut:
    """Read it."""
    return LeftOut(tuple(each.kept(using=using) for each in hooks().hindrances))


class FirstOfKind(NamedTuple):
    """
    The first available task of a kind: priority (smaller is more urgent), due time and id (both None on SQLite). ``parts``:
    optional lines of the statements that take its tasks, so that these leave some of them out.
    """

    priority: int
    due_at: datetime | None
    id: UUID | None = None
    parts: frozenset[str] = frozenset()

    @property
    def place(self) -> IndexPlace:
        """Its place in the index: nothing of its kind and priority comes before."""
        return BEGINNING if self.due_at is None or self.id is None else IndexPlace(self.due_at, self.id)


# Kind → its priorities, each with the place before which there was nothing.
Places = dict[str, dict[int, IndexPlace]]
_FIRST_PRIORITY: Final = -(2**15)
_AFTER_ALL: Final = 2**15
_QUESTION: Final = "ready"
_Row = tuple[str, int, datetime | None, UUID | None, bool]


class Kind(NamedTuple):
    """
    The present state of a kind: tasks claimed and not started; how many of these were sent ``lately`` and not handed back;
    seconds of its handler for one task, as measured (None: nobody has run it).
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


def ready_kinds(task_keys: Sequence[str], *, now: datetime | None = None, using: str) -> dict[str, FirstOfKind]:
    """
    The first available task of each kind that has one that may run: one look in an index for each kind. If anything is kept
    from running, a second statement reads what; if only some tasks of a kind are, a third skips them. If ``now`` is known, a
    kind of which nothing is available is not read in vain either (``floors``).
    """
    rows = _ready(task_keys, frozenset(), now, using)
    left = left_out(using=using) if rows and rows[0][-1] else NOTHING
    if parts := left.parts:
        rows = _ready(task_keys, parts, now, using)
    ready: dict[str, FirstOfKind] = {}
    for task_key, priority, due_at, task_id, _some_kept in rows:
        if not left.covers(task_key) and _is_before(priority, ready.get(task_key)):
            ready[task_key] = FirstOfKind(priority, due_at, task_id, parts)
    return ready


def _is_before(priority: int, other: FirstOfKind | None) -> bool:
    return other is None or priority < other.priority


def _ready(task_keys: Sequence[str], asked: frozenset[str], now: datetime | None, using: str) -> list[_Row]:
    """The first of each kind, or several of which one is the first."""
    dialect = dialect_of(using)
    with connections[using].cursor() as cursor:
        if not dialect.has_trigger_functions:
            cursor.execute(_ready_sql(dialect, asked), {"task_keys": dialect.list_of(task_keys)})
            return [(key, priority, None, None, held) for key, priority, _at, held in cursor.fetchall()]
        floor = floor_of(" ".join((_QUESTION, *asked, *task_keys)), dict[str, dict[int, IndexPlace]], using=using)
        (places, whole), begun = floor.begin(), monotonic()
        parameters = ranges(task_keys, places)
        if not asked:
            cursor.execute(READY_KINDS.call("*"), parameters)
        else:
            execute_guided(cursor, _ready_sql(dialect, asked), parameters, settings=IN_ORDER, using=using)
        found = cursor.fetchall()
    if found:
        note_dead(found[0][-1], using=using)
    rows: list[_Row] = [row[:-1] for row in found]
    floor.found(lambda: _after(places, task_keys, rows, now), begun, whole=whole, using=using)
    return rows


def ranges(task_keys: Sequence[str], places: Places) -> dict[str, list[Any]]:
    """What to read, as parameters: of each kind all, but for what is before the place of a priority."""
    if not any(places.values()):
        return {"task_keys": list(task_keys), "priorities": [], "since": [], "since_ids": [], "before": []}
    parts = [part for task_key in task_keys for part in _ranges_of(task_key, places.get(task_key, {}))]
    names = ("task_keys", "priorities", "since", "since_ids", "before")
    return dict(zip(names, map(list, zip(*parts, strict=True)), strict=True))


def _ranges_of(task_key: str, places: dict[int, IndexPlace]) -> Iterator[tuple[str, int, datetime, UUID, int]]:
    priority, place = _FIRST_PRIORITY, BEGINNING
    for following in sorted(places):
        if priority < following:
            yield (task_key, priority, *place, following)
        priority, place = following, places[following]
    yield (task_key, priority, *place, _AFTER_ALL)


def _after(places: Places, task_keys: Sequence[str], rows: Sequence[_Row], now: datetime | None) -> Places:
    """The places before which there was nothing, after a look."""
    found: Places = defaultdict(dict)
    for task_key, priority, due_at, task_id, _some_kept in rows:
        found[task_key][priority] = FirstOfKind(priority, due_at, task_id).place
    nothing = BEGINNING if now is None else IndexPlace(now - SLACK)
    after = {}
    for task_key in task_keys:
        known = places.get(task_key) or {_declared(task_key): BEGINNING}
        after[task_key] = {priority: max(place, nothing) for priority, place in known.items()} | found[task_key]
    return after


def _declared(task_key: str) -> int:
    """The priority of a kind, unless its rows say another."""
    try:
        return registry.task(task_key)[1].options.priority
    except UnknownTask:
        return 0


def lower_ready(place: IndexPlace, *, using: str) -> None:
    """Let this process look for available tasks from this place on, at the latest: it has put some there."""
    for floor in floors_of(_QUESTION, using=using):
        places: Places | None = floor.place
        if places is not None:
            floor.place = {
                task_key: {priority: min(known, place) for priority, known in of_kind.items()}
                for task_key, of_kind in places.items()
            }


@cache
def _ready_sql(dialect: Dialect, asked: frozenset[str]) -> str:
    return narrowed(dialect.sql("ready_kinds"), asked)


def look_at_kinds(
    task_keys: Sequence[str], *, lately: timedelta, leases_valid_at: datetime | None = None, using: str
) -> dict[str, Kind]:
    """
    The present state of these kinds, by one statement. Tasks sent within ``lately`` count as recent. ``leases_valid_at``: a
    machine time at which no lease had expired; None: not known. The index before it is not read.
    """
    dialect = dialect_of(using)
    parameters: dict[str, Any] = {
        "task_keys": dialect.list_of(task_keys),
        "lately": dialect.ago(lately),
        "leases_valid_at": leases_valid_at,
    }
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("kinds"), parameters)
        return {task_key: Kind(*found) for task_key, *found in cursor.fetchall()}


def recent_ends(task_keys: Sequence[str], states: Iterable[str], most: int, *, using: str) -> list[ScheduledTask]:
    """Read the last due ``most`` ended tasks of each kind and state, unordered: key, state, reason code, start and end."""
    dialect = dialect_of(using)
    asked = {"task_keys": dialect.list_of(task_keys), "states": dialect.list_of(sorted(states)), "most": most}
    return list(ScheduledTask.objects.using(using).raw(dialect.sql("recent_ends"), asked)) if task_keys else []
