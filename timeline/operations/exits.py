"""Exits recorded since a run began: they end it, even if no code saw them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from timeline.definition import Definition
from timeline.models import EntityRef, Event, TimelineRun
from timeline.models.kin import kin_of


def exits_since(asked: Sequence[tuple[TimelineRun, Definition]], *, using: str) -> dict[UUID, str]:
    """
    Find the runs that are ended by an event recorded after they began, and by which exit.

    Args:
        asked: Runs, each with its timeline as it is declared now.
        using: Database alias.

    Returns:
        Id of a run → the name of the exit. One statement for all runs together; none, if no timeline has an exit.
    """
    asked = [(run, definition) for run, definition in asked if definition.exits]
    if not asked:
        return {}
    events = _events(asked, using)
    ended: dict[UUID, str] = {}
    for run, definition in asked:
        for event in events.get(run.entity_ref, []):
            # The time of recording counts. When the event happened, and from when the times of the run count, does not matter.
            since_start = (event.recorded_at, event.pk) > (run.known_since, run.pk)
            if since_start and event.name in definition.exits:
                ended.setdefault(run.pk, definition.exits[event.name])
    return ended


def _events(asked: Sequence[tuple[TimelineRun, Definition]], using: str) -> dict[EntityRef, list[Event]]:
    """
    Read the exit events of the runs' entities, under all their names, for all runs together. Each is checked by the caller.
    """
    kin = kin_of({run.entity_ref for run, _definition in asked}, using=using)
    names = {name for several in kin.values() for name in several}
    events = Event.objects.using(using).filter(
        entity_label__in=sorted({name.label for name in names}),
        entity_id__in=sorted({name.id for name in names}),
        name__in=sorted({name for _run, definition in asked for name in definition.exits}),
        recorded_at__gte=min(run.known_since for run, _definition in asked),
    )
    found: dict[EntityRef, list[Event]] = defaultdict(list)
    for event in events.only("name", "entity_label", "entity_id", "recorded_at"):
        found[event.entity_ref].append(event)
    return {ref: [event for name in several for event in found.get(name, ())] for ref, several in kin.items()}
