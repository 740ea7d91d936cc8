"""Many moves of the usual kind: the tasks that follow them are planned while the database writes the moves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import Model

from timeline.definition.machines import table_of
from timeline.models import EntityRef, TimelineRun
from timeline.models.visits import wanted_of
from timeline.operations.machines import Moving, steps_of
from timeline.operations.reconciling_moved import reconcile_moved
from timeline.operations.sets import PORTION
from timeline.store.inserting import Insertion
from timeline.store.machines import Going, send_moves
from timeline.store.pipelining import can_pipeline, pipelining
from timeline.store.rows_to_plan import lock_rows_to_plan
from timeline.store.telling import may_hosts_write

if TYPE_CHECKING:
    from timeline.operations._event_fields import EventFields


def are_many(moves: Sequence[Moving], held: Mapping[EntityRef, Model | None], *, using: str) -> bool:
    """
    Whether moves should be written this way: there are many, none comes to an end, and the database can pipeline statements.
    Not if receivers of the host hear of moves, because they may change rows that were read before. And not if planning calls
    code of the host, because it may make queries, which cannot wait in a pipeline.
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
    Write an event, the moves that it makes, and the tasks that follow them.

    Args:
        moves: See ``are_many``. The caller has locked the entities and the runs.
        said: The event.
        event: Its rows; only new rows move a run.
        causes: Name under which the event is recorded → id of the event.
        held: The entities; None: not read.
        later: Runs that are not reconciled here, since the caller does it at its end.
        now: Story time.
        using: Database alias.

    Returns:
        The runs that have moved, as they are after it.

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
    steps = steps_of(moves, causes, using=using)
    with pipelining(using):
        event.send()
        if event.taken:
            recorded = event.inserted()
            steps = [step for step in steps if step.cause_id in recorded]
        going = Going(steps, event=said.name, actor=said.actor, now=now, using=using)
        with going.minding():
            moved = send_moves(going, using=using) if steps else None
            runs = going.come()
            reconciled = [run for run in runs if run.id not in later]
            reconcile_moved(reconciled, before, held, rows=rows, now=now, using=using)
            if moved is not None:
                moved()
    return runs
