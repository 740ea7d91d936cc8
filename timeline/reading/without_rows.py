"""Says why an entity has no task: which date is empty, what has ended, or why nothing began."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.models import EntityRef, Event, TimelineRun, family_of, model_of
from timeline.models.entities import label_of, load_entities
from timeline.reading.reason_texts import retold_end
from timeline.reading.timeline_pictures import starts_of
from timeline.registry import registry
from timeline.suggestions import near
from timeline.timing import told_time

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
    said = _("Its run of %(timeline)s is open since %(at)s, and has nothing to do.")
    return said % {"timeline": run.timeline, "at": told_time(run.started_at)}


def _of_ended(run: TimelineRun) -> str:
    if run.ended_at is None:
        return ""
    told = {"timeline": run.timeline, "at": told_time(run.ended_at), "why": retold_end(run)}
    return _("Its run of %(timeline)s ended on %(at)s: %(why)s.") % told


def _told_empty(run: TimelineRun, dates: Iterable[str]) -> str:
    told = {"timeline": run.timeline, "at": told_time(run.started_at), "dates": _listed(dates)}
    return (
        _("Its run of %(timeline)s is open since %(at)s; empty is %(dates)s. A row is made as soon as it is set.")
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
        yield _("There is no %(entity)s in the database %(database)s.") % {"entity": ref, "database": using}
        return
    model = model_of(ref.label)
    labels = {label_of(each) for each in family_of(model)} if model else {ref.label}
    about = [known for known in registry if known.label in labels]
    if not about:
        yield _("No timeline is about %(label)s.") % {"label": ref.label}
        return
    yield _("No run has begun for it. These would begin one:")
    only_start = pgettext("timeline", "only start()")
    yield from (f"  {known.name}: {_listed(starts_of(known)) or only_start}" for known in about)
    events = Event.objects.using(using).for_entity(ref).order_by("-recorded_at", "-pk").values_list("name", flat=True)
    if names := list(dict.fromkeys(events[: 4 * MOST_NAMED]))[:MOST_NAMED]:
        yield _("Events recorded about it: %(events)s.") % {"events": _listed(names)}
        wanted = {start for known in about for start in known.starts_on if isinstance(start, str)}
        if meant := [name for each in names if each not in wanted for name in near(each, wanted, most=1)]:
            yield _("Perhaps %(event)s was meant.") % {"event": _listed(dict.fromkeys(meant))}
    yield _(
        "bulk_create() and fixtures send no signal: after them, enroll() starts runs. And what was there before its timeline "
        "has no run until it is enrolled."
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
