"""Emit: record a domain event; it ends runs, and it starts runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Model
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from timeline.conf import get_settings
from timeline.exceptions import InvalidInput, KeyConflict
from timeline.lifecycle import Reason, ReasonCode
from timeline.models import EntityRef, Event, TimelineRun, ref_of
from timeline.models.inserting import insert_missing
from timeline.operations._locking import lock_entity
from timeline.operations.leaving import end_runs
from timeline.operations.starting import start_runs
from timeline.payloads import check_json, check_text
from timeline.registry import registry
from timeline.timing import check_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """
    What an event did.

    Args:
        event: The row.
        recorded: False if it was there already (same name, entity, key and payload); nothing was done then.
        started: Runs it started.
        ended: Runs it ended.
    """

    event: Event
    recorded: bool
    started: tuple[TimelineRun, ...] = ()
    ended: tuple[TimelineRun, ...] = ()


def emit(
    *,
    name: str,
    entity: Model | EntityRef | None,
    key: str,
    payload: dict[str, Any],
    actor: str,
    occurred_at: datetime | None,
    now: datetime,
    using: str,
) -> Emission:
    """
    Record an event in the caller's transaction, end the runs it exits, then start the runs it starts.

    Args:
        name: For example ``user.created``; 100 characters at most, no blanks.
        entity: Whose event; None for the system's.
        key: Makes it unique for this name and entity; empty: recorded each time. 200 characters at most.
        payload: Plain JSON, an object.
        actor: Who did it; empty for the system itself. 150 characters at most.
        occurred_at: When it happened (aware): runs it starts count from then. None: now.
        now: Story time.
        using: Database alias of the entity.

    Raises:
        KeyConflict: if the key was used with another payload.
        InvalidInput, WrongEntity, NotPlainJSON, PayloadTooLarge, NaiveDatetime, DateOutOfRange: nothing is written then.
    """
    _check(name, key, payload, actor)
    happened = now if occurred_at is None else check_time("occurred_at", occurred_at)
    ref = ref_of(entity)
    with transaction.atomic(using=using):
        entities = lock_entity(ref, using=using)
        event = Event(
            name=name,
            entity_label=ref.label,
            entity_id=ref.id,
            key=key,
            payload=payload,
            actor=actor,
            occurred_at=happened,
            recorded_at=now,
        )
        if not insert_missing([event], using=using):
            return _again(event, using)
        ended = _exit(event, ref, now=now, using=using)
        definitions = registry.started_by(name, ref.label) if get_settings().AUTOSTART else []
        started = start_runs(definitions, ref, entities, started_at=happened, event=event, now=now, using=using)
    return Emission(
        event=event, recorded=True, started=tuple(run for run, created in started if created), ended=tuple(ended)
    )


def _again(event: Event, using: str) -> Emission:
    """Find the one recorded with the same key."""
    known = Event.objects.using(using).for_entity(event.entity_ref).get(name=event.name, key=event.key)
    if known.payload != event.payload:
        raise KeyConflict(format_lazy(_("event '{name}'"), name=event.name), event.key, _("payload"))
    return Emission(event=known, recorded=False)


def _exit(event: Event, ref: EntityRef, *, now: datetime, using: str) -> list[TimelineRun]:
    exits = {definition.name: definition.exits[event.name] for definition in registry.ended_by(event.name, ref.label)}
    if not exits:
        return []
    runs = list(TimelineRun.objects.using(using).open().for_entity(ref).filter(timeline__in=exits).order_by("pk"))
    for exit_name in dict.fromkeys(exits[run.timeline] for run in runs):
        leaving = [run for run in runs if exits[run.timeline] == exit_name]
        end_runs(leaving, reason=Reason(ReasonCode.EXIT, exit_name, event.actor), now=now, using=using)
    return runs


def _check(name: str, key: str, payload: dict[str, Any], actor: str) -> None:
    check_text("name", name, 100, least=1)
    if re.search(r"\s", name):
        raise InvalidInput("name", _("%(name)r has blanks."), _("Give text like 'user.created'."), name=name)
    check_text("key", key, 200)
    check_text("actor", actor, 150)
    if not isinstance(payload, dict):
        raise InvalidInput("payload", _("is a %(kind)s."), _("Give a dict."), kind=type(payload).__name__)
    check_json("payload", payload)
