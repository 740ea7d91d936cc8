"""Reconcile runs of machines that have just moved, and write events with their moves and tasks in few trips."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Model

from timeline.definition import Definition
from timeline.features.machines.declaration import table_of
from timeline.features.machines.moves import Moving, new_states_of
from timeline.features.machines.one_trip import Moved, fits, move_at_once
from timeline.features.machines.store import Going, send_moves
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import Entities, load_entities
from timeline.models.facts import wanted_of
from timeline.operations.reconcile import changes_of, plans_of, reconcile_locked
from timeline.operations.sets import PORTION
from timeline.registry import registry
from timeline.store.insert import Insertion
from timeline.store.locks import lock_rows_to_plan
from timeline.store.multi_query import can_pipeline, pipelining
from timeline.store.signal_dispatch import may_hosts_write

if TYPE_CHECKING:
    from timeline.operations.record_event import EventFields


def reconcile_moved(
    moved: Iterable[TimelineRun],
    before: Mapping[UUID, str],
    held: Mapping[EntityRef, Model | None],
    *,
    rows: Mapping[UUID, list[ScheduledTask]] | None = None,
    now: datetime,
    using: str,
) -> list[ScheduledTask]:
    """
    Reconcile runs of machines that have just moved, locked with their entities: tasks of the old state are cancelled, those of
    the new one made and given. Tasks of a run without usable times follow when its entity is corrected.

    Args:
        before: Id of a run → the state it left.
        held: The entities; None: not read.
        rows: Id of a run → the tasks it is planned from, if they were read and locked before.
    """
    known = [(run, registry.about(run.timeline, run.entity_label)) for run in moved if run.is_open]
    bound = [
        (run, definition)
        for run, definition in known
        if definition is not None and not definition.bound_states.isdisjoint({run.state, before.get(run.id, run.state)})
    ]
    if not bound:
        return []
    entities, taken = read_of(bound, held, using=using)
    runs = [run for run, _definition in bound]
    return reconcile_locked(runs, entities, there=taken, moved=True, rows=rows, now=now, using=using, lenient=True)


def read_of(
    bound: Sequence[tuple[TimelineRun, Definition]], held: Mapping[EntityRef, Model | None], *, using: str
) -> tuple[Entities, set[EntityRef]]:
    """Read the entities from which locked runs are planned, if they were not read. Also gives those that need no reading."""
    read = {ref for run, definition in bound if definition.label and held.get(ref := run.entity_ref) is None}
    wanted = read if any(definition.followed_fields for _run, definition in bound) else set()
    entities = load_entities(wanted, using=using)
    entities |= {ref: entity for ref, entity in held.items() if entity is not None}
    return entities, read - wanted


def are_many(moves: Sequence[Moving], held: Mapping[EntityRef, Model | None], *, using: str) -> bool:
    """
    Whether to write moves this way: many, none to an end, and statements can be pipelined. Not if receivers of the host hear of
    moves and may change rows, or if planning calls code of the host, whose queries cannot wait.
    """
    if len(moves) <= PORTION or may_hosts_write() or not can_pipeline(using):
        return False
    known = {move.definition.name: move.definition for move in moves}.values()
    if any(one.followed_fields or one.awaited_fields or one.asks_of_holidays for one in known):
        return False
    if any(entity is not None for entity in held.values()):
        return False
    return not any(move.target in table_of(move.definition).ends for move in moves)


def write_ahead(
    moves: Sequence[Moving],
    said: EventFields,
    event: Insertion,
    causes: Mapping[EntityRef, UUID],
    held: Mapping[EntityRef, Model | None],
    *,
    later: Collection[UUID],
    now: datetime,
    using: str,
) -> list[TimelineRun]:
    """
    Write an event, its moves (``are_many``), and the tasks that follow; gives the runs after them. Entities and runs are
    locked.

    Args:
        event: Its rows; only new rows move a run.
        causes: Name under which the event is recorded → id of the event.
        held: The entities; None: not read.
        later: Runs that are not reconciled here, since the caller does it at its end.

    Raises:
        MoveNotAllowed: if a run has changed since it was read; the caller undoes what was written.
    """
    bound = [
        (move.run, move.definition)
        for move in moves
        if move.run.id not in later and not move.definition.bound_states.isdisjoint({move.run.state, move.target})
    ]
    there = lock_rows_to_plan(wanted_of(bound, moved=True), using=using)
    rows = {run.id: there.get(run.id, []) for run, _definition in bound}
    before = {move.run.id: move.run.state for move in moves}
    new_states = new_states_of(moves, causes, using=using)
    with pipelining(using):
        event.send()
        if event.taken:
            recorded = event.inserted()
            new_states = [new for new in new_states if new.cause_id in recorded]
        going = Going(new_states, event=said.name, actor=said.actor, now=now, using=using)
        with going.minding():
            moved = send_moves(going, using=using) if new_states else None
            runs = going.come()
            reconciled = [run for run in runs if run.id not in later]
            reconcile_moved(reconciled, before, held, rows=rows, now=now, using=using)
            if moved is not None:
                moved()
    return runs


def are_plain(moves: Sequence[Moving]) -> bool:
    """
    Whether moves can be written at once: their tasks were read, none comes to an end, and planning needs no code of the host
    nor facts known only when a move is written.
    """
    return bool(moves) and all(map(_is_plain, moves))


def _is_plain(move: Moving) -> bool:
    known, rows = move.definition, move.rows
    if rows is None or any(row.slot for row in rows):
        return False
    if move.target in table_of(known).ends or move.target in known.backing_off:
        return False
    return not known.awaited_fields and not known.asks_of_holidays


def write_at_once(
    moves: Sequence[Moving],
    said: EventFields,
    event: Mapping[str, Any],
    held: Mapping[EntityRef, Model | None],
    *,
    now: datetime,
    using: str,
) -> Moved | None:
    """
    Write an event, its moves (``are_plain``) of one entity, and the tasks that follow. None: nothing was written, as one trip
    is not enough; the runs are as they were. ``MoveNotAllowed``: a run has changed since; the caller undoes what was written.
    """
    new_states = new_states_of(moves, {move.subject: event["id"] for move in moves}, using=using)
    going = Going(new_states, event=said.name, actor=said.actor, now=now, using=using)
    bound = [
        (move.run, move.definition)
        for move in moves
        if not move.definition.bound_states.isdisjoint({move.run.state, move.target})
    ]
    entities, there = read_of(bound, held, using=using)
    going.come()
    present = entities.keys() | entities.unreadable.keys() | there
    if all(run.entity_ref in present for run, known in bound if known.label):
        rows = {move.run.pk: move.rows or [] for move in moves}
        writes, tasks = changes_of(plans_of(bound, entities, rows, {}, now=now, lenient=True), now=now)
        if fits(writes, tasks):
            return move_at_once(going, event, writes, tasks, now=now, using=using)
    going.stay()
    return None
