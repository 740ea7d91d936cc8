"""Succeed: begin the runs that start after ended runs, and wake tasks that wait for their end, in the same transaction."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from timeline.conf import get_settings
from timeline.definition import Definition
from timeline.hooks import asked_for, hooks
from timeline.lifecycle import RunEnd, State
from timeline.models import EntityRef, Event, ScheduledTask, TimelineRun, model_of
from timeline.models.entities import load_entities
from timeline.registry import registry
from timeline.store.run_insert import Beginning, begin_runs, constantly, plan_runs
from timeline.store.signal_dispatch import may_hosts_write

logger = logging.getLogger("timeline")


def succeed(ended: Iterable[TimelineRun], *, now: datetime, using: str) -> list[TimelineRun]:
    """
    Begin the runs that follow runs ended in this transaction, and wake tasks that wait for their end; entities are locked,
    tasks written. A run without usable time is not begun, and the log says so. The number of statements is fixed for each kind
    of entity.
    """
    ended = list(ended)
    for tell in asked_for(hooks().run_ends, ended):
        tell(ended, now=now, using=using)
    wanted = [
        (run, definition, start)
        for run in ended
        if get_settings().AUTOSTART and run.end_code != RunEnd.ENTITY_GONE
        for definition, start in registry.started_after(run.timeline, run.entity_label)
        if run.end_code in start.ends
    ]
    again = [run for run in ended if _begins_again(run)]
    causes = _came_meanwhile(again, using=using) if again else {}
    if not wanted and not causes:
        return []
    done = _completed([run for run, _definition, start in wanted if start.only_completed], using)
    wanted = [each for each in wanted if not each[2].only_completed or each[0].pk in done]
    beginnings = _planned([(run, definition) for run, definition, _start in wanted], now=now, using=using)
    meant = [(run, registry.timeline(run.timeline)) for run in again if run.pk in causes]
    beginnings += _planned(meant, causes=causes, now=now, using=using)
    return [beginning.run(using=using) for beginning in begin_runs(beginnings, now=now, using=using)]


def _completed(runs: Sequence[TimelineRun], using: str) -> set[UUID]:
    """Ids of the runs with a completed task and without a dead letter that nobody has redriven."""
    if not runs:
        return set()
    tasks = ScheduledTask.objects.using(using).filter(run__in=[run.pk for run in runs])
    completed = tasks.filter(state=State.COMPLETED).values_list("run_id", flat=True).distinct()
    return set(completed) - set(tasks.dead_letters().values_list("run_id", flat=True))


def _begins_again(run: TimelineRun) -> bool:
    """Whether the timeline of a run begins again for events that came while the run was open."""
    known = registry.about(run.timeline, run.entity_label) if run.is_finished and not run.key else None
    return known is not None and known.again and get_settings().AUTOSTART


def _came_meanwhile(ended: Sequence[TimelineRun], *, using: str) -> dict[UUID, UUID]:
    """
    The last event that came while each run was open and would have started a run: id of the run → id of the event. One
    statement for each timeline. Only events after the one that started the run count; if it was begun by hand, after its
    beginning. One that has begun a run itself does not: the run that ends may be an earlier one that was redriven.
    """
    alike: dict[str, list[UUID]] = defaultdict(list)
    for run in ended:
        alike[run.timeline].append(run.pk)
    found: dict[UUID, UUID] = {}
    for name, runs in alike.items():
        definition = registry.timeline(name)
        names = [start for start in definition.starts_on if isinstance(start, str)]
        model = model_of(definition.label)
        parents = [parent._meta.label_lower for parent in model._meta.get_parent_list()] if model else []
        events = Event.objects.using(using).filter(
            entity_label__in=[definition.label, *parents], entity_id=OuterRef("entity_id"), name__in=names
        )
        seen = Coalesce(OuterRef("started_by__recorded_at"), OuterRef("recorded_at"))
        later = events.filter(
            Q(recorded_at__gt=seen) | Q(recorded_at=seen, pk__gt=Coalesce(OuterRef("started_by"), OuterRef("pk")))
        )
        last = later.order_by("-recorded_at", "-pk").values("pk")[:1]
        every = TimelineRun.objects.using(using)
        again = every.filter(pk__in=runs).annotate(again=Subquery(last)).filter(again__isnull=False)
        begun = every.filter(timeline=name, entity_id=OuterRef("entity_id"), started_by=OuterRef("again"))
        found |= dict(again.exclude(Exists(begun)).values_list("pk", "again"))
    return found


def _planned(
    wanted: Sequence[tuple[TimelineRun, Definition]],
    *,
    causes: Mapping[UUID, UUID] | None = None,
    now: datetime,
    using: str,
) -> list[Beginning]:
    """Plan a run with the same entity and key for each run; a run with a cause is begun by that event."""
    alike: dict[tuple[str, str], dict[EntityRef, TimelineRun]] = defaultdict(dict)
    definitions = {definition.name: definition for _run, definition in wanted}
    for run, definition in wanted:
        alike[definition.name, run.key][run.entity_ref] = run
    # A receiver of the host, which was told that the runs end, may have deleted their entities.
    ask = may_hosts_write()
    read = {run.entity_ref for run, known in wanted if known.followed_fields or (ask and run.entity_label)}
    there = load_entities(read, using=using) if read else {}
    found = []
    for (name, key), runs in alike.items():
        entities = {ref: there.get(ref) for ref in runs if ref not in read or ref in there}
        each = {ref.label: [definitions[name]] for ref in entities}
        by = {ref: causes[runs[ref].pk] for ref in entities} if causes else None
        for beginning in plan_runs(each, entities, causes=by, key=key, begins=constantly(now), now=now):
            if beginning.problem is not None:
                logger.error("No run of %s for %s: %s", name, beginning.ref, beginning.problem.in_english())
                continue
            if not causes:
                beginning.change(params=_params(runs[beginning.ref]))
            found.append(beginning)
    return found


def _params(run: TimelineRun) -> dict[str, Any]:
    """The parameters that tell handlers which run has ended."""
    return {"after_run": str(run.pk), "timeline": run.timeline, "ended": run.end_code}
