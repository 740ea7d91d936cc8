"""Start: begin a run, and write the future it holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.definition import Definition
from timeline.exceptions import WrongEntity
from timeline.models import EntityRef, Event, TimelineRun, ref_of
from timeline.models.inserting import insert_missing
from timeline.operations._locking import lock_entity
from timeline.operations.reconciling import reconcile_locked
from timeline.payloads import check_json, check_text
from timeline.registry import registry
from timeline.timing import check_time

MAX_RUN_KEY = 100


class Started(NamedTuple):
    """A run, and whether it is new: false if one was open already, which is left as it is."""

    run: TimelineRun
    created: bool


def start(
    *,
    timeline: str,
    entity: Model | EntityRef | None,
    key: str,
    params: dict[str, Any],
    started_at: datetime | None,
    now: datetime,
    using: str,
) -> Started:
    """
    Start a run of a timeline by hand.

    Args:
        timeline: Its name.
        entity: Whose run; None for a system timeline.
        key: Tells runs of the same timeline and entity apart; at most one is open for each key.
        params: Kept on the run, for handlers. Plain JSON.
        started_at: What times count from (aware); None: now.
        now: Story time.
        using: Database alias of the entity.

    Raises:
        UnknownTimeline, WrongEntity, InvalidInput, NotPlainJSON, PayloadTooLarge, NaiveDatetime, DateOutOfRange: nothing is
            written then.
    """
    definition = registry.timeline(timeline)
    ref = ref_of(entity, definition.label)
    if ref.label != definition.label:
        said = {"timeline": timeline, "wanted": definition.label or _("no entity"), "entity": ref}
        problem = _("the timeline %(timeline)r is about %(wanted)s, not %(entity)s.")
        raise WrongEntity(problem, _("Give the entity it is about."), **said)
    check_text("key", key, MAX_RUN_KEY)
    check_json("params", params)
    begin = now if started_at is None else check_time("started_at", started_at)
    with transaction.atomic(using=using):
        entities = lock_entity(ref, using=using)
        [started] = start_runs(
            [definition], ref, entities, key=key, params=params, started_at=begin, event=None, now=now, using=using
        )
    return started


def start_runs(
    definitions: Sequence[Definition],
    ref: EntityRef,
    entities: dict[EntityRef, Model],
    *,
    key: str = "",
    params: dict[str, Any] | None = None,
    started_at: datetime,
    event: Event | None,
    now: datetime,
    using: str,
) -> list[Started]:
    """
    Start a run of each definition for an entity that the caller has locked, and reconcile them together.

    Returns:
        One for each definition, in their order.
    """
    if not definitions:
        return []
    new = [
        TimelineRun(
            timeline=definition.name,
            entity_label=ref.label,
            entity_id=ref.id,
            key=key,
            params=params or {},
            started_at=started_at,
            started_by=event,
        )
        for definition in definitions
    ]
    created = insert_missing(new, using=using)
    reconcile_locked(created, entities, now=now, using=using, fresh=True)
    runs = {run.timeline: run for run in created}
    if missing := [run.timeline for run in new if run.timeline not in runs]:
        there = TimelineRun.objects.using(using).open().for_entity(ref).filter(timeline__in=missing, key=key)
        runs |= {run.timeline: run for run in there}
    return [Started(runs[run.timeline], run in created) for run in new]
