"""A move of one entity of the usual kind: everything is planned before anything is written, and then written in one trip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Model

from timeline.definition.machines import table_of
from timeline.models import EntityRef
from timeline.operations._carrying_out import changes_of, plans_of
from timeline.operations.machines import Moving, steps_of
from timeline.operations.reconciling_moved import read_of
from timeline.store.machines import Going
from timeline.store.moving_at_once import Moved, fits, move_at_once

if TYPE_CHECKING:
    from timeline.operations._event_fields import EventFields


def are_plain(moves: Sequence[Moving]) -> bool:
    """
    Whether moves can be written at once: the tasks of their runs were read with them, none comes to an end, and planning needs
    neither facts that are known only when a move is written, nor code of the host.
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
    Write the event, the moves that it makes, and the tasks that follow them.

    Args:
        moves: Moves of one entity; see ``are_plain``.
        said: The event.
        event: Columns of its row.
        held: The entity, by each of its names; None: not read.
        now: Story time.
        using: Database alias.

    Returns:
        What was written. None: nothing was written, because one trip is not enough; the runs are as they were.

    Raises:
        MoveNotAllowed: if a run has changed since it was read; the caller undoes what was written.
    """
    steps = steps_of(moves, {move.subject: event["id"] for move in moves}, using=using)
    going = Going(steps, event=said.name, actor=said.actor, now=now, using=using)
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
