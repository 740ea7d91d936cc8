"""Reconcile: change the rows of runs to what their definition asks for. Called after every change that may matter to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from itertools import chain
from uuid import UUID

from timeline import reasons
from timeline.lifecycle import RunEnd
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import Entities
from timeline.models.visits import tries_of, wanted_of
from timeline.operations._carrying_out import carry_out, plans_of
from timeline.operations._seeing_again import seen_again
from timeline.operations._succeeding import succeed
from timeline.operations.leaving import end_runs
from timeline.operations.sets import portions_of
from timeline.planning import Plan, TaskRow
from timeline.registry import registry
from timeline.runs import end
from timeline.store.pipelining import pipelining
from timeline.store.rows_to_plan import lock_rows_to_plan


def reconcile_locked(
    runs: Iterable[TimelineRun],
    entities: Entities,
    *,
    now: datetime,
    using: str,
    lenient: bool = False,
    there: Collection[EntityRef] = (),
    moved: bool = False,
    rows: Mapping[UUID, Sequence[TaskRow]] | None = None,
    choose: Callable[[TimelineRun, Plan], Plan] | None = None,
) -> list[ScheduledTask]:
    """
    Reconcile runs that the caller has locked, with their entities. Any number in a fixed number of statements.

    Args:
        runs: The runs. A run that has ended is left as it is.
        entities: The entities of the runs, locked. A missing one was deleted, unless it is ``unreadable`` or in ``there``.
        now: Story time.
        using: Database alias.
        lenient: Whether to leave a run, and not to raise, if its entity gives no usable time: for workers and operators.
        there: Entities that exist, and were not read because none of their fields is needed.
        moved: Whether these are runs of machines that have just moved.
        rows: Id of a run → its rows, for runs whose rows were read before. Rows that may change are locked.
        choose: Called with a run and its plan; gives the plan to carry out. None: the plan is carried out as it is.

    Returns:
        The tasks created.

    Raises:
        DateOutOfRange, NaiveDatetime: if a field of an entity gives no usable time; nothing is changed then.
        UnreadableEntity: if an entity cannot be read, and its timeline depends on its fields.
    """
    entities, there = seen_again(runs := list(runs), entities, there, using=using)
    known = [
        (run, definition)
        for run in runs
        if run.is_open and (definition := registry.about(run.timeline, run.entity_label))
    ]
    present = entities.keys() | entities.unreadable.keys() | set(there)
    gone = [run for run, definition in known if definition.label and run.entity_ref not in present]
    if gone:
        end_runs(gone, RunEnd.ENTITY_GONE, reason=reasons.DELETED(), now=now, using=using)
    alive = [(run, definition) for run, definition in known if run.is_open]
    unread = [(run, definition) for run, definition in alive if run.id not in (rows or {})]
    standing = {**lock_rows_to_plan(wanted_of(unread, moved=moved), using=using), **(rows or {})}
    tries = tries_of(alive, using=using) if any(definition.backing_off for _run, definition in alive) else {}
    # In portions: while the database writes one, the next is planned. All at once if planning may raise, because nothing must
    # have been written then; or if it may call the host's code, which may query the database meanwhile.
    whole = not lenient or choose is not None or any(entity is not None for entity in entities.values())
    whole = whole or any(definition.asks_of_holidays for _run, definition in alive)
    parts = [alive] if whole else portions_of(alive, using=using)
    written, nothing_left = list[Callable[[], list[ScheduledTask]]](), list[TimelineRun]()
    with pipelining(using) if len(parts) > 1 else nullcontext():
        for part in parts:
            planned = plans_of(part, entities, standing, tries, now=now, lenient=lenient, choose=choose)
            read = chain.from_iterable(standing.get(run.id, []) for run, _definition in part)
            written.append(carry_out(planned, read, now=now, using=using))
            nothing_left += [run for run, _definition, plan in planned if not plan.open]
    created = [task for done in written for task in done()]
    if nothing_left:
        end(nothing_left, RunEnd.FINISHED, now=now, using=using)
        succeed(nothing_left, now=now, using=using)
    return created
