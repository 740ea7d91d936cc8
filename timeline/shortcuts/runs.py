"""Verbs that begin and end runs: events, and verbs by hand; for one entity, or any number."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from timeline.clocks import story_now
from timeline.models import TimelineRun
from timeline.operations import emit as operations_emit
from timeline.operations import enroll as operations_enroll
from timeline.operations import leave as operations_leave
from timeline.operations import start as operations_start
from timeline.operations.emit import Emission
from timeline.operations.sets import BATCH, Tally
from timeline.operations.start import Started
from timeline.payloads import as_text
from timeline.registry import registry
from timeline.shortcuts._named import Entities, alias_of, batches_of

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.definition import Machine, Timeline


def emit(
    name: str,
    entity: Model | None = None,
    *,
    key: str = "",
    payload: dict[str, Any] | None = None,
    actor: str = "",
    occurred_at: datetime | None = None,
    machine: str | type[Machine] | None = None,
    expect: str | None = None,
    using: str | None = None,
) -> Emission:
    """
    Record a domain event in the current transaction. It ends runs, moves machines and starts runs, in this order.

    With ``expect``, the run of the entity's machine has to be in that state; with ``machine``, this machine has to take it.
    See ``timeline.operations.emit.emit`` for arguments and errors.
    """
    using = using or alias_of(entity)
    return operations_emit.emit(
        name=as_text(name) if isinstance(name, str) else name,
        entity=entity,
        key=key,
        payload={} if payload is None else payload,
        actor=actor,
        occurred_at=occurred_at,
        machine="" if machine is None else registry.timeline(machine).name,
        expect=expect,
        using=using,
    )


def emit_many(
    name: str,
    entities: Entities,
    *,
    key: str = "",
    payload: dict[str, Any] | None = None,
    actor: str = "",
    occurred_at: datetime | None = None,
    machine: str | type[Machine] | None = None,
    expect: str | None = None,
    spread: timedelta | None = None,
    batch_size: int = BATCH,
    using: str | None = None,
) -> Tally:
    """
    Record the same domain event of many entities, as ``emit`` would for each, in batches of a few statements.

    Each batch commits on its own, unless you are in a transaction. Called again after an error or a crash, with the same
    ``key``, it continues where it stopped. ``entities`` may be any iterable, also a generator; of a queryset, only the keys are
    read, in their order. With ``spread``, the first tasks become due one after the other within that time. See
    ``timeline.operations.emit.emit_many`` for errors.
    """
    return operations_emit.emit_many(
        name=as_text(name) if isinstance(name, str) else name,
        batches=batches_of(entities, batch_size, using),
        key=key,
        payload={} if payload is None else payload,
        actor=actor,
        occurred_at=occurred_at,
        machine="" if machine is None else registry.timeline(machine).name,
        expect=expect,
        spread=spread,
        clock=story_now,
    )


def start(
    timeline: str | type[Timeline],
    entity: Model | None = None,
    *,
    key: str = "",
    params: dict[str, Any] | None = None,
    started_at: datetime | None = None,
    using: str | None = None,
) -> Started:
    """Start a run by hand. See ``timeline.operations.start.start`` for arguments and errors."""
    using = using or alias_of(entity)
    return operations_start.start(
        timeline=registry.timeline(timeline).name,
        entity=entity,
        key=key,
        params={} if params is None else params,
        started_at=started_at,
        using=using,
    )


def start_many(
    timeline: str | type[Timeline],
    entities: Entities,
    *,
    key: str = "",
    params: dict[str, Any] | None = None,
    started_at: datetime | str | None = None,
    batch_size: int = BATCH,
    using: str | None = None,
) -> Tally:
    """
    Start a run for each of many entities, as ``start`` would, in batches of a few statements.

    ``started_at`` may name a field of the entity. Batches commit as those of ``emit_many``. Call it again to continue: entities
    with an open run are skipped. See ``timeline.operations.start.start_many`` for errors.
    """
    definition = registry.timeline(timeline)
    return operations_start.start_many(
        timeline=definition.name,
        batches=batches_of(entities, batch_size, using, definition.label),
        key=key,
        params={} if params is None else params,
        started_at=started_at,
        clock=story_now,
    )


def enroll(
    timeline: str | type[Timeline],
    queryset: Entities,
    *,
    key: str = "",
    params: dict[str, Any] | None = None,
    started_at: datetime | str | None = None,
    once: bool = False,
    spread: timedelta | None = None,
    past: str = "run",
    actor: str = "",
    batch_size: int = BATCH,
    using: str | None = None,
) -> Tally:
    """
    Start a run for each entity of a queryset that has no open run; with ``once``, for each that never had a run.

    The number of entities is not limited: there are batches as for ``start_many``, and only one batch is in memory. Call it
    again to continue with the rest. ``past`` says what happens to tasks that were due before: ``run``, ``skip`` or ``expire``.
    See ``timeline.operations.enroll.enroll`` for arguments and errors.
    """
    definition = registry.timeline(timeline)
    return operations_enroll.enroll(
        timeline=definition.name,
        batches=batches_of(queryset, batch_size, using, definition.label, field="queryset"),
        key=key,
        params={} if params is None else params,
        started_at=started_at,
        once=once,
        spread=spread,
        past=past,
        actor=actor,
        clock=story_now,
    )


def leave(
    timeline: str | type[Timeline],
    entity: Model | None = None,
    *,
    reason: str,
    key: str = "",
    actor: str = "",
    using: str | None = None,
) -> TimelineRun:
    """End the open run of an entity by hand. See ``timeline.operations.leave.leave`` for arguments and errors."""
    using = using or alias_of(entity)
    name = registry.timeline(timeline).name
    return operations_leave.leave(timeline=name, entity=entity, key=key, reason=reason, actor=actor, using=using)
