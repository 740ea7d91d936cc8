"""Tasks without a row: follow-ups of open tasks, previews of runs, what follows in a series, and why an entity has no task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from timeline.definition import Definition
from timeline.exceptions import InvalidInput, UnknownTask, WrongEntity
from timeline.models import EntityRef, Event, ScheduledTask, TimelineRun, family_of, model_of, ref_of
from timeline.models.entities import label_of, load_entities
from timeline.models.facts import plan_of, wanted_of
from timeline.planning import Create, Foreseen, Plan
from timeline.reading.reason_texts import retold_end
from timeline.reading.timeline_pictures import starts_of
from timeline.registry import registry
from timeline.store.locks import RowToPlan, read_rows_to_plan
from timeline.suggestions import near
from timeline.timing import LATEST, check_time, told_time


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


MOST_NAMED: Final = 5


def why_no_tasks(ref: EntityRef, *, using: str) -> str:
    """Tell of its runs, which are open or have ended, and why they have no row; without a run, what is likely."""
    runs = list(TimelineRun.objects.using(using).for_entity(ref).order_by("-started_at", "-pk")[:MOST_NAMED])
    told = [*(_of_open(run, using) for run in runs if run.ended_at is None), *map(_of_ended, runs)]
    return "\n".join(filter(None, told or _of_none(ref, using)))


def empty_dates(ref: EntityRef, *, using: str) -> Iterator[str]:
    """Say of each open run which dates of the entity are empty, so that tasks have no row."""
    for run in TimelineRun.objects.using(using).open().for_entity(ref).order_by("started_at", "pk"):
        if dates := _empty(run, using):
            yield _told_empty(run, dates)


def _of_open(run: TimelineRun, using: str) -> str:
    if dates := _empty(run, using):
        return _told_empty(run, dates)
    said = gettext("Its run of %(timeline)s is open since %(at)s, and has nothing to do.")
    return said % {"timeline": run.timeline, "at": told_time(run.started_at)}


def _of_ended(run: TimelineRun) -> str:
    if run.ended_at is None:
        return ""
    told = {"timeline": run.timeline, "at": told_time(run.ended_at), "why": retold_end(run)}
    return gettext("Its run of %(timeline)s ended on %(at)s: %(why)s.") % told


def _told_empty(run: TimelineRun, dates: Iterable[str]) -> str:
    told = {"timeline": run.timeline, "at": told_time(run.started_at), "dates": _listed(dates)}
    return (
        gettext("Its run of %(timeline)s is open since %(at)s; empty is %(dates)s. A row is made as soon as it is set.")
        % told
    )


def _empty(run: TimelineRun, using: str) -> list[str]:
    """Fields of its entity that tasks count from, and that are empty."""
    definition = registry.about(run.timeline, run.entity_label)
    entity = load_entities([run.entity_ref], using=using).get(run.entity_ref) if definition else None
    if definition is None or entity is None:
        return []
    fields = [task.when.field_name for task in definition.tasks.values() if task.when and task.when.field_name]
    return [name for name in dict.fromkeys(fields) if getattr(entity, name, name) is None]


def _of_none(ref: EntityRef, using: str) -> Iterator[str]:
    """Say what is likely where nothing began."""
    if ref not in (there := load_entities([ref], using=using)) and ref not in there.unreadable:
        yield gettext("There is no %(entity)s in the database %(database)s.") % {"entity": ref, "database": using}
        return
    model = model_of(ref.label)
    labels = {label_of(each) for each in family_of(model)} if model else {ref.label}
    about = [known for known in registry if known.label in labels]
    if not about:
        yield gettext("No timeline is about %(label)s.") % {"label": ref.label}
        return
    yield gettext("No run has begun for it. These would begin one:")
    only_start = pgettext("timeline", "only start()")
    yield from (f"  {known.name}: {_listed(starts_of(known)) or only_start}" for known in about)
    events = Event.objects.using(using).for_entity(ref).order_by("-recorded_at", "-pk").values_list("name", flat=True)
    if names := list(dict.fromkeys(events[: 4 * MOST_NAMED]))[:MOST_NAMED]:
        yield gettext("Events recorded about it: %(events)s.") % {"events": _listed(names)}
        wanted = {start for known in about for start in known.starts_on if isinstance(start, str)}
        if meant := [name for each in names if each not in wanted for name in near(each, wanted, most=1)]:
            yield gettext("Perhaps %(event)s was meant.") % {"event": _listed(dict.fromkeys(meant))}
    yield gettext(
        "bulk_create() and fixtures send no signal: after them, enroll() starts runs. And what was there before its timeline "
        "has no run until it is enrolled."
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def is_repeated(task: ScheduledTask) -> bool:
    """Whether the task is repeated, as far as this process knows."""
    try:
        return task.run_id is not None and registry.task(task.task_key)[1].is_repeated
    except UnknownTask:
        return False


def series_ahead(task: ScheduledTask, *, now: datetime, using: str) -> Iterator[str]:
    """For an open task, say when the next ones are expected. Nothing if it is not repeated."""
    if task.run is None or not is_repeated(task):
        return
    outlooks = foreseen_of([task.run], now=now, using=using)
    coming = [item.expected_at for _run, item in outlooks if item.task_key == task.task_key and item.expected_at]
    if coming:
        yield gettext("It is number %(number)s of its series. The next are foreseen on %(times)s.") % {
            "number": task.occurrence,
            "times": ", ".join(told_time(at) for at in coming),
        }
    else:
        yield gettext("It is number %(number)s of its series, and the last.") % {"number": task.occurrence}


def series_after(task: ScheduledTask, *, using: str) -> str | None:
    """For an ended task, say which task of its series followed it; None: none did."""
    if not is_repeated(task) or not task.occurrence.isdecimal():
        return None
    following = ScheduledTask.objects.using(using).filter(
        run=task.run_id, task_key=task.task_key, occurrence=str(int(task.occurrence) + 1)
    )
    later = following.order_by("-revision").first()
    if later is None:
        return None
    return gettext("Number %(number)s of its series followed, due on %(at)s.") % {
        "number": later.occurrence,
        "at": told_time(later.scheduled_at),
    }
