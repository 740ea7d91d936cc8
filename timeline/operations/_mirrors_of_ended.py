"""Mirrors of ended runs: entities that show another state than that in which the last run of their machine ended."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.db.models import Q

from timeline.clocks import story_now
from timeline.models import TimelineRun
from timeline.models.entities import load_entities
from timeline.operations._parting import Part, Swept, Taken, each_if_not_all
from timeline.registry import registry
from timeline.store.entity_locks import lock_entities
from timeline.store.machines import last_moved, runs_to_move
from timeline.store.mirroring import mirror_runs, shows_another

logger = logging.getLogger("timeline")

RECENT: Final = timedelta(days=1)  # Code that saves an object it read long ago has read it on the same day.


class EndedRuns(Part[TimelineRun]):
    """Runs of machines that show their states, and that ended lately. Open runs are checked with all other open runs."""

    name = "machines: ended"  # No timeline can have this name.

    def __init__(self, machines: Sequence[str]) -> None:
        self.machines = machines

    def take(self, position: dict[str, Any], *, begins: bool, size: int, using: str) -> Taken:
        """Read the next runs, in the order in which they ended."""
        runs = TimelineRun.objects.using(using).filter(timeline__in=self.machines, pruned=False, state__gt="", key="")
        runs = runs.filter(ended_at__gte=story_now(using) - RECENT)
        if not begins:
            at = datetime.fromisoformat(position["at"])
            runs = runs.filter(ended_at__gte=at).filter(Q(ended_at__gt=at) | Q(pk__gt=position["id"]))
        some = list(runs.order_by("ended_at", "pk")[:size])
        last = some[-1] if some else None
        stands = {"at": last.ended_at.isoformat(), "id": str(last.pk)} if last and last.ended_at else position
        return Taken(some, stands, is_last=len(some) < size)

    def mend(self, some: Sequence[TimelineRun], *, now: datetime, using: str) -> Swept:  # noqa: ARG002 (no time in it)
        """Write the states of runs whose entities show another state."""
        entities = load_entities((run.entity_ref for run in some), using=using)
        wrong = [
            run
            for run in some
            if (definition := registry.about(run.timeline, run.entity_label)) is not None
            and shows_another(run, definition, entities.get(run.entity_ref))
        ]
        mended = each_if_not_all(wrong, partial(_mirror, using=using), using=using)
        if mended:
            logger.info("The sweep wrote the states of %d machines that have ended anew.", mended)
        return Swept(looked=len(some), mended=mended, left=True)


def _mirror(runs: Sequence[TimelineRun], *, using: str) -> int:
    """Write the state of the last run that ended, for entities without an open run. An open run shows its own state."""
    refs = {run.entity_ref for run in runs}
    machines: dict[str, str | None] = dict.fromkeys({run.timeline for run in runs}, "")
    lock_entities(refs, using=using, fresh=True)
    running = {(run.timeline, run.entity_ref) for run in runs_to_move(refs, machines, using=using)}
    last = last_moved(refs, machines, using=using)
    return mirror_runs([run for run in last if (run.timeline, run.entity_ref) not in running], using=using)


def ended_parts() -> Iterator[EndedRuns]:
    """The part of the sweep that checks ended runs; none if no machine shows its state."""
    if machines := sorted(known.name for known in registry.machines() if known.mirror):
        yield EndedRuns(machines)
