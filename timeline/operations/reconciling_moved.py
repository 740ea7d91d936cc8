"""Reconcile runs of machines that have just moved, if tasks are bound to the states that they left or came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Model

from timeline.definition import Definition
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import Entities, load_entities
from timeline.operations.reconciling import reconcile_locked
from timeline.registry import registry


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
    Reconcile runs of machines that have just moved: tasks bound to the state that they left are cancelled, and tasks bound to
    the new state are made. If no task is bound to either, there is no query.

    A run whose entity gives no usable time has moved all the same: its tasks follow when the entity is corrected.

    Args:
        moved: The runs after the move, locked with their entities.
        before: Id of a run → the state it left.
        held: The entities; None: not read.
        rows: Id of a run → the tasks it is planned from, for runs whose tasks were read and locked before.
        now: Story time.
        using: Database alias.

    Returns:
        The tasks created.
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
    """
    Read the entities from which locked runs are planned, if they were not read. Also gives the entities that need no reading.
    """
    read = {ref for run, definition in bound if definition.label and held.get(ref := run.entity_ref) is None}
    wanted = read if any(definition.followed_fields for _run, definition in bound) else set()
    entities = load_entities(wanted, using=using)
    entities |= {ref: entity for ref, entity in held.items() if entity is not None}
    return entities, read - wanted
