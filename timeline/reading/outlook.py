"""Tasks without a row: follow-ups of open tasks, and a preview of a run before it starts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from timeline.definition import Definition
from timeline.exceptions import InvalidInput, WrongEntity
from timeline.models import EntityRef, TimelineRun, family_of, ref_of
from timeline.models.entities import label_of, load_entities
from timeline.models.facts import plan_of, wanted_of
from timeline.planning import Create, Foreseen, Plan
from timeline.registry import registry
from timeline.store.locks import RowToPlan, read_rows_to_plan
from timeline.timing import LATEST, check_time


class Outlook(NamedTuple):
    """A task that may come; ``expected_at`` None: nobody can say when. ``why`` is such as ``2 days after expire completes``."""

    task_key: str
    expected_at: datetime | None
    why: str


def foreseen(*, entity: Model | EntityRef | None, now: datetime, using: str) -> list[Outlook]:
    """List follow-ups that get a row if their predecessors complete, the soonest first, of the entity's whole family."""
    runs = TimelineRun.objects.using(using).open().for_entity(entity)
    given = _as_its_parents(entity) if isinstance(entity, Model) else {}
    return [outlook for _run, outlook in foreseen_of(runs, now=now, using=using, entities=given)]


def _as_its_parents(entity: Model) -> dict[EntityRef, Model]:
    return {ref_of(entity, label_of(model)): entity for model in family_of(entity.__class__)}


@dataclass(frozen=True, slots=True)
class Ahead:
    """What was read of open runs to foresee their follow-ups. ``foresee`` reads nothing more, and takes most of the time."""

    known: list[tuple[TimelineRun, Definition]]
    rows: Mapping[UUID | None, list[RowToPlan]]
    entities: Mapping[EntityRef, Model]

    def foresee(self, *, now: datetime) -> list[tuple[TimelineRun, Outlook]]:
        """List the follow-ups, the soonest first."""
        found = []
        for run, definition in self.known:
            planned = _planned(run, definition, self.entities.get(run.entity_ref), self.rows.get(run.pk, ()), now)
            found += [(run, outlook) for outlook in _outlooks(definition, planned.foreseen)]
        return sorted(found, key=lambda pair: _moment(pair[1]))


def foreseen_of(
    runs: Iterable[TimelineRun], *, now: datetime, using: str, entities: Mapping[EntityRef, Model] | None = None
) -> list[tuple[TimelineRun, Outlook]]:
    """List follow-ups of several open runs, the soonest first; as many queries for a hundred runs as for one of their kind."""
    return ahead_of(runs, using=using, entities=entities).foresee(now=now)


def ahead_of(runs: Iterable[TimelineRun], *, using: str, entities: Mapping[EntityRef, Model] | None = None) -> Ahead:
    """Read what ``foreseen_of`` tells from. ``entities``: those that the caller has read."""
    known = [
        (run, definition) for run in runs if (definition := registry.about(run.timeline, run.entity_label)) is not None
    ]
    rows: dict[UUID | None, list[RowToPlan]] = defaultdict(list)
    for task in read_rows_to_plan(wanted_of(known), using=using):
        rows[task.run_id].append(task)
    given = entities or {}
    there = load_entities({run.entity_ref for run, _definition in known} - given.keys(), using=using)
    readable = [(run, definition) for run, definition in known if run.entity_ref not in there.unreadable]
    return Ahead(readable, rows, {**there, **given})


def preview(*, timeline: str, entity: Model | None, started_at: datetime | None, now: datetime) -> list[Outlook]:
    """List the tasks that a run would have if it started now, the soonest first; those whose anchor is not set come last."""
    definition = registry.timeline(timeline)
    begin = now if started_at is None else check_time("started_at", started_at)
    ref = ref_of(entity, definition.label)
    if entity is not None and ref.label != definition.label:
        problem = _("the timeline %(timeline)r is not about %(entity)s.")
        raise WrongEntity(problem, _("Give the entity it is about."), timeline=timeline, entity=ref)
    if entity is not None and definition.label not in map(label_of, family_of(entity.__class__)):
        entity = _as_the_child(ref, entity)
    run = TimelineRun(timeline=timeline, entity_label=ref.label, entity_id=ref.id, started_at=begin)
    if definition.has_states:
        run.state, run.state_at = definition.initial, now
    planned = plan_of(run, definition, entity, [], now=now)
    outlooks = _outlooks(definition, planned.foreseen)
    outlooks += [
        _outlook(definition, change.task_name, change.times.scheduled_at, change.occurrence)
        for change in planned.changes
        if isinstance(change, Create)
    ]
    known = {outlook.task_key for outlook in outlooks}
    anchorless = [
        name for name, task in definition.tasks.items() if task.when and definition.task_key(name) not in known
    ]
    return _in_order([*outlooks, *(_outlook(definition, name, None) for name in anchorless)])


def _as_the_child(ref: EntityRef, entity: Model) -> Model:
    """Read the child of a parent; it may be missing, or unreadable."""
    using = entity._state.db or DEFAULT_DB_ALIAS
    there = load_entities([ref], using=using)
    for unreadable in there.unreadable.values():
        raise unreadable
    if ref not in there:
        problem = _("%(entity)s is not in the database %(using)r.")
        raise WrongEntity(problem, _("Save it there first, or name its database."), entity=ref, using=using)
    return there[ref]


def _planned(
    run: TimelineRun, definition: Definition, entity: Model | None, rows: Iterable[RowToPlan], now: datetime
) -> Plan:
    try:
        return plan_of(run, definition, entity, rows, now=now)
    except InvalidInput:
        return Plan()


def _outlooks(definition: Definition, expected: Iterable[Foreseen]) -> list[Outlook]:
    return [_outlook(definition, item.task_name, item.expected_at, item.occurrence) for item in expected]


def _outlook(definition: Definition, name: str, at: datetime | None, occurrence: str = "") -> Outlook:
    why = definition.tasks[name].describe()
    if occurrence:
        why = gettext("%(why)s: number %(number)s") % {"why": why, "number": occurrence}
    return Outlook(definition.task_key(name), at, why)


def _in_order(outlooks: Iterable[Outlook]) -> list[Outlook]:
    return sorted(outlooks, key=_moment)


def _moment(outlook: Outlook) -> tuple[datetime, str]:
    return outlook.expected_at or LATEST, outlook.task_key
