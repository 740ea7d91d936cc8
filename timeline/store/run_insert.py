"""Begin runs, any number at once: first all are planned, then all are written, with one statement for each table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import partial
from itertools import chain, repeat
from typing import Any, Final
from uuid import UUID

from django.db import connections
from django.db.models import Model

from timeline.definition import Definition
from timeline.dialects import dialect_of
from timeline.exceptions import InvalidInput
from timeline.features.machines.mirror import inserting_entries, show_begun
from timeline.hooks import hooks
from timeline.ids import fresh_ids, uuid7_texts
from timeline.lifecycle import RunEnd, State
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.facts import facts_in, zone_of
from timeline.planning import Create, VisitPlace, plan
from timeline.registry import registry
from timeline.runs import end, ending
from timeline.store.insert import Grid, Insertion, as_stored, insert_in_turn
from timeline.store.new_rows import declared_columns, first_look, planned_columns, state_at
from timeline.store.signal_dispatch import announce
from timeline.timing import share_of

_Planned = tuple[list[dict[str, Any]], bool]  # Columns of the rows of a run, and whether anything is left of it.
Begins = Callable[[Definition, Model | None], datetime]  # What the times of a run count from.
_NO_STATE: Final = {"state": "", "state_at": None}
FEW: Final = 100  # Runs whose tables go together: one trip saves more than to prepare one while another is written.


@dataclass(frozen=True, slots=True)
class Spreading:
    """
    Makes the first tasks of a run due later by a share of ``spread``, within their windows. Tasks due already count from now.
    """

    spread: timedelta
    share: timedelta
    now: datetime

    def of(self, columns: dict[str, Any], definition: Definition, entity: Model | None) -> dict[str, Any]:
        """The columns of a row, with its later due time."""
        begins, expires_at = max(columns["scheduled_at"], self.now), columns["expires_at"]
        hours = registry.task(columns["task_key"])[1].options.window
        due_at = begins + self.share
        if hours is not None:
            zone = zone_of(definition, entity)
            if hours.outside == "cancel" and not hours.is_open(columns["nominal_at"], zone):
                return columns  # The task is called off at its own time.
            due_at = hours.spread_over(hours.next_open(begins, zone), self.share, self.spread, zone)
        later = due_at - columns["scheduled_at"]
        return columns | {
            "scheduled_at": due_at,
            "state": state_at(due_at, self.now),
            "expires_at": None if expires_at is None else expires_at + later,
        }


@dataclass(slots=True, kw_only=True)
class Beginning:
    """
    A run that may begin, and the rows it would have.

    Args:
        started_by_id: Of the event that begins it, if one does.
        alike: The other columns of its row. Runs that begin alike share them: see ``change``.
        planned: The columns of each first task. Runs with the same plan share the list.
        open: Whether the run stays open; otherwise nothing is planned, and it ends at once.
        ever: Whether it does not begin if there was ever one with the same timeline, entity and key.
        problem: Why it cannot begin. This is raised only if no run is open already.
        event, actor: Event that begins it, and who emitted that: for the first entry of a machine.
    """

    ref: EntityRef
    id: UUID
    started_by_id: UUID | None
    alike: Mapping[str, Any]
    planned: Sequence[dict[str, Any]] = ()
    open: bool = True
    ever: bool = False
    problem: InvalidInput | None = None
    event: str = ""
    actor: str = ""
    entry_id: str = ""

    @property
    def columns(self) -> dict[str, Any]:
        """All columns of the row of the run."""
        named = {"entity_label": self.ref.label, "entity_id": self.ref.id, "started_by_id": self.started_by_id}
        return {"id": self.id, **named, **self.alike}

    def change(self, **columns: Any) -> None:
        """Give the run other values than it was planned with. Other runs keep theirs."""
        self.alike = {**self.alike, **columns}

    def run(self, *, using: str) -> TimelineRun:
        """The run, once it has begun."""
        return as_stored(TimelineRun(**self.columns), using=using)


def plan_runs(
    definitions: Mapping[str, Sequence[Definition]],
    entities: Mapping[EntityRef, Model | None],
    *,
    causes: Mapping[EntityRef, UUID] | None = None,
    key: str = "",
    keys: Mapping[str, str] | None = None,
    params: dict[str, Any] | None = None,
    event: str = "",
    actor: str = "",
    begins: Begins,
    spread: timedelta | None = None,
    now: datetime,
) -> list[Beginning]:
    """
    Plan a run of each definition (model → its timelines) for each locked entity. Writes nothing.

    Args:
        causes: Entity → id of the event that starts its runs.
        keys: Name of a timeline → key of its runs, in place of ``key``.
        begins: Gives the moment from which the times of a run count.
        spread: The first tasks become due up to so much later, each entity's at a moment of its own.
    """
    alike = {
        definition.name: _columns_alike(definition, (keys or {}).get(definition.name, key), params or {}, now)
        for several in definitions.values()
        for definition in several
    }
    later: dict[tuple[str, datetime], dict[str, Any]] = {}
    plans, ids = _Plans(now), fresh_ids()
    found = []
    for ref, entity in entities.items():
        event_id = causes[ref] if causes else None
        named = (ref.label, ref.id, key)
        for definition in definitions[ref.label]:
            beginning = Beginning(ref=ref, id=next(ids), started_by_id=event_id, alike=alike[definition.name])
            beginning.ever, beginning.event, beginning.actor = definition.once, event, actor
            try:
                started_at = begins(definition, entity)
                if started_at != now:
                    other = {**beginning.alike, "started_at": started_at}
                    beginning.alike = later.setdefault((definition.name, started_at), other)
                beginning.planned, beginning.open = plans.of(definition, entity, started_at, named)
                if spread is not None:
                    spreading = Spreading(spread, share_of(spread, definition.name, *named), now)
                    beginning.planned = [spreading.of(columns, definition, entity) for columns in beginning.planned]
            except InvalidInput as problem:
                beginning.problem = problem
            found.append(beginning)
    return found


def _columns_alike(definition: Definition, key: str, params: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The columns that are the same in all runs of a timeline that begin together."""
    columns = {"timeline": definition.name, "key": key, "once": definition.once, "params": params}
    columns |= {"started_at": now, "recorded_at": now}
    return columns | ({} if definition.machine is None else {"state": definition.machine.initial, "state_at": now})


class _Plans:
    """Plans new runs. If a timeline reads no field of its entity, all its runs that begin at the same time share one plan."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._plan = partial(plan, rows=(), now=now, foresees=False)
        self.declared: dict[str, dict[str, dict[str, Any]]] = {}
        self.known: dict[tuple[str, datetime, tzinfo | None], _Planned] = {}

    def of(self, definition: Definition, entity: Model | None, started_at: datetime, about: Sequence[str]) -> _Planned:
        if definition.anchor_fields or definition.is_spread or definition.backing_off:
            return self.plan(definition, entity, started_at, about)
        alike = definition.name, started_at, zone_of(definition, entity) if definition.cls.time_zone else None
        if alike not in self.known:
            self.known[alike] = self.plan(definition, entity, started_at, about)
        return self.known[alike]

    def plan(
        self, definition: Definition, entity: Model | None, started_at: datetime, about: Sequence[str]
    ) -> _Planned:
        if definition.name not in self.declared:
            self.declared[definition.name] = {name: declared_columns(definition, name) for name in definition.tasks}
        declared = self.declared[definition.name]
        place = None if definition.machine is None else VisitPlace(definition.machine.initial, self.now, 0, tries=1)
        facts, by_table = facts_in(definition, entity), place is not None
        planned = self._plan(definition, started_at=started_at, **facts, about=about, by_table=by_table, place=place)
        changes = [change for change in planned.changes if isinstance(change, Create)]
        columns = [
            declared[change.task_name]
            | planned_columns(change, now=self.now)
            | (first_look(self.now) if definition.tasks[change.task_name].looks_first else {})
            for change in changes
        ]
        return columns, planned.open


def constantly(moment: datetime) -> Begins:
    """Times count from this moment."""
    return lambda _definition, _entity: moment


def needs_savepoint(beginnings: Iterable[Beginning]) -> bool:
    """Whether ``begin_runs`` may raise after it has written something, which then has to be undone."""
    return any(beginning.problem is not None for beginning in beginnings)


def begin_runs(
    beginnings: Sequence[Beginning], *, first: Insertion | None = None, now: datetime, using: str
) -> list[Beginning]:
    """
    Begin runs with their tasks, for entities that the caller has locked; returns those begun. Where a run is open, or may begin
    only once and there was one, none begins. A ``problem`` is raised: ``NaiveDatetime`` or ``DateOutOfRange``. ``first``: the
    events that start them, sent together with the runs. A run whose event was not inserted does not begin.
    """
    if any(beginning.ever for beginning in beginnings):
        beginnings = _without_earlier(beginnings, using=using)
    many = first is None and len(beginnings) > FEW
    new = _begin_many(beginnings, using) if many else _begin_few(beginnings, first, using)
    begun = [beginning for beginning in beginnings if beginning.id in new]
    for beginning in begun:
        if beginning.problem is not None:
            raise beginning.problem.of(beginning.ref)
    if moving := _of_machines(begun):
        show_begun(moving, using=using)
    for tell in hooks().recorded:
        tell([beginning.id for beginning in begun if beginning.started_by_id is None], using=using)
    different = {id(beginning.planned): beginning.planned for beginning in begun}.values()
    if any(planned["state"] == State.AVAILABLE for several in different for planned in several):
        announce(using=using)
    if nothing_left := [beginning for beginning in begun if not beginning.open]:
        _finish(nothing_left, now=now, using=using)
    return begun


def _without_earlier(beginnings: Sequence[Beginning], *, using: str) -> Sequence[Beginning]:
    """Leave out runs that were there and may begin only once. If ``once`` was declared later, no index tells this."""
    wanted = [(*beginning.ref, beginning.alike["timeline"], beginning.alike["key"]) for beginning in beginnings]
    once = [place for place, beginning in zip(wanted, beginnings, strict=True) if beginning.ever]
    dialect = dialect_of(using)
    names = ("entity_labels", "entity_ids", "timelines", "keys")
    parameters = {name: dialect.list_of(values) for name, values in zip(names, zip(*once, strict=True), strict=True)}
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("earlier_runs"), parameters)
        places = set(map(tuple, cursor.fetchall()))
    return [
        beginning
        for place, beginning in zip(wanted, beginnings, strict=True)
        if not beginning.ever or place not in places
    ]


def _begin_few(beginnings: Sequence[Beginning], first: Insertion | None, using: str) -> set[UUID]:
    """Insert few runs with their tasks in one trip: this takes less time than one trip for each table."""
    runs = _inserting_runs(beginnings, under="started_by_id" if first and first.taken else "", using=using)
    insertions = [runs, _inserting_tasks(beginnings, under="run_id", using=using)]
    if moving := _of_machines(beginnings):
        insertions.append(inserting_entries(moving, under="run_id", using=using))
    insert_in_turn([first, *insertions] if first else insertions, using=using)
    return runs.inserted()


def _begin_many(beginnings: Sequence[Beginning], using: str) -> set[UUID]:
    """Insert many runs; their tasks are prepared while the database writes the runs."""
    runs = _inserting_runs(beginnings, using=using).send()
    tasks = _inserting_tasks(beginnings, using=using)
    new = runs.inserted()
    if len(new) < len(beginnings):
        beginnings = [beginning for beginning in beginnings if beginning.id in new]
        tasks = _inserting_tasks(beginnings, using=using)
    tasks.send()
    if moving := _of_machines(beginnings):
        inserting_entries(moving, using=using).send()
    return new


def _of_machines(beginnings: Sequence[Beginning]) -> list[Beginning]:
    return [beginning for beginning in beginnings if "state" in beginning.alike]


def _inserting_runs(beginnings: Sequence[Beginning], *, under: str = "", using: str) -> Insertion:
    """The rows of runs. If some are runs of machines, the others get the columns of the state, too, and no state."""
    alike = [beginning.alike for beginning in beginnings]
    names = dict.fromkeys(chain.from_iterable({id(shared): shared for shared in alike}.values()))
    columns: dict[str, list[Any]] = {
        "id": [beginning.id for beginning in beginnings],
        "started_by_id": [beginning.started_by_id for beginning in beginnings],
        "entity_label": [beginning.ref.label for beginning in beginnings],
        "entity_id": [beginning.ref.id for beginning in beginnings],
        **{name: [shared.get(name, _NO_STATE.get(name)) for shared in alike] for name in names},
    }
    return Insertion(TimelineRun, columns, under=under, using=using)


def _inserting_tasks(beginnings: Sequence[Beginning], *, under: str = "", using: str) -> Insertion:
    """The tasks that runs have from the start. A new run has no other tasks, so that no place is taken."""
    counts = [len(beginning.planned) for beginning in beginnings]
    if not any(counts):
        return Insertion(ScheduledTask, {}, using=using)
    keys = {"id": uuid7_texts(sum(counts))}
    if grid := _grid_of(beginnings):
        return Insertion(ScheduledTask, keys, grid=grid, under=under, taken=False, using=using)
    rows = [(beginning.ref, planned) for beginning in beginnings for planned in beginning.planned]
    of_runs = {
        name: list(chain.from_iterable(map(repeat, values, counts))) for name, values in _of_runs(beginnings).items()
    }
    planned = _planned([planned for _ref, planned in rows])
    columns = {**keys, **of_runs, **planned}
    for some in hooks().some_columns:
        if any(some.names[0] in plan for _ref, plan in rows):
            columns |= some.fill(rows, using=using)
    return Insertion(ScheduledTask, columns, under=under, taken=False, using=using)


def _grid_of(beginnings: Sequence[Beginning]) -> Grid | None:
    """The columns of tasks, if all runs have the same tasks; None: they do not, or a column depends on the entity."""
    alike = beginnings[0].planned
    if len(beginnings) < 2 or len(alike) < 2 or any(beginning.planned is not alike for beginning in beginnings):
        return None
    if any(some.names[0] in planned for planned in alike for some in hooks().some_columns):
        return None
    return Grid(_of_runs(beginnings), _planned(alike))


def _of_runs(beginnings: Sequence[Beginning]) -> dict[str, list[Any]]:
    """The columns that tasks have from their runs: a value for each run."""
    return {
        "run_id": [beginning.id.hex for beginning in beginnings],
        "cause_id": [beginning.started_by_id and beginning.started_by_id.hex for beginning in beginnings],
        "entity_label": [beginning.ref.label for beginning in beginnings],
        "entity_id": [beginning.ref.id for beginning in beginnings],
    }


def _planned(some: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The columns that tasks have from their plans: a value for each task."""
    apart = {name for columns in hooks().some_columns for name in columns.names} | {"occurrence"}
    columns = {
        name: [planned[name] for planned in some] for planned in some[:1] for name in planned if name not in apart
    }
    numbers = [planned.get("occurrence", "") for planned in some]
    return columns | ({"occurrence": numbers} if any(numbers) else {})


def _finish(beginnings: Sequence[Beginning], *, now: datetime, using: str) -> None:
    """End runs for which nothing is planned."""
    finished = [beginning.run(using=using) for beginning in beginnings]
    end(finished, RunEnd.FINISHED, now=now, using=using)
    for beginning in beginnings:
        beginning.change(**ending(RunEnd.FINISHED, now=now))
