"""Verbs that only read: they leave nothing behind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, router
from django.utils.translation import gettext_lazy as _

from timeline.clocks import story_now
from timeline.features.plans import what_if as plans_what_if
from timeline.features.plans.what_if import Effect, effects, looker
from timeline.models import EntityRef, ScheduledTask, ref_of
from timeline.payloads import check_is_dict, unfit
from timeline.reading import dead_letters as dead
from timeline.reading import explanation, outlook
from timeline.reading.dead_letters import DeadLetters
from timeline.reading.outlook import Outlook
from timeline.registry import registry
from timeline.shortcuts._named import alias_of, named_one

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.definition import Timeline


def preview(
    timeline: str | type[Timeline],
    entity: Model | None = None,
    *,
    started_at: datetime | None = None,
    using: str | None = None,
) -> list[Outlook]:
    """Say which tasks a run started now would have, and when. Writes nothing."""
    using = using or alias_of(entity)
    name = registry.timeline(timeline).name
    return outlook.preview(timeline=name, entity=entity, started_at=started_at, now=story_now(using))


def what_if(
    entity: Model | EntityRef,
    *,
    fields: Mapping[str, Any] | None = None,
    timeline: str | type[Timeline] = "",
    key: str = "",
    params: dict[str, Any] | None = None,
    started_at: datetime | None = None,
    event: str = "",
    payload: dict[str, Any] | None = None,
    using: str | None = None,
) -> list[Effect]:
    """
    Say what an entity would have ahead if fields to which its tasks are anchored had other values. Or if a run of this timeline
    were started, or this event came. The changes are made, looked at and undone.
    See ``timeline.features.plans.what_if.try_out`` for errors.
    """
    if fields is not None and not isinstance(fields, Mapping):
        raise unfit("fields", fields, _("Give names of fields, each with its value."))
    for name, given in (("params", params), ("payload", payload)):
        if given is not None:
            check_is_dict(name, given)
    ref, using = ref_of(entity), using or alias_of(entity if not isinstance(entity, EntityRef) else None)
    now = story_now(using)
    change = plans_what_if.Tried(
        fields=fields or {},
        timeline=registry.timeline(timeline).name if timeline else "",
        key=key,
        params=params or {},
        started_at=started_at,
        event=event,
        payload=payload or {},
    )
    look = looker(ref, now=now, using=using)
    before, after = plans_what_if.try_out(look, ref=ref, change=change, now=now, using=using)
    return effects(before, after)


def foreseen(entity: Model | None = None, *, using: str | None = None) -> list[Outlook]:
    """Say which follow-ups of an entity's open tasks may still come, and when. Writes nothing."""
    using = using or alias_of(entity)
    return outlook.foreseen(entity=entity, now=story_now(using), using=using)


def explain(task: ScheduledTask | UUID, *, using: str | None = None) -> str:
    """
    Tell the story of a task, or of the one with this id, in plain sentences: why it exists, when it is due, what happened, what
    comes next.

    Raises:
        ScheduledTask.DoesNotExist: if there is none of this id.
    """
    if not isinstance(task, ScheduledTask):
        task_id, using = named_one(task, using)
        task = ScheduledTask.objects.using(using).select_related("run", "cause").get(pk=task_id)
    using = using or task._state.db or DEFAULT_DB_ALIAS
    return explanation.explain(task, now=story_now(using), using=using)


def dead_letters(*, using: str | None = None) -> list[DeadLetters]:
    """List tasks that were discarded and not redriven since, in groups of the same failure, the last first."""
    using = using or router.db_for_write(ScheduledTask)
    return dead.dead_letters(ScheduledTask.objects.using(using).all())
