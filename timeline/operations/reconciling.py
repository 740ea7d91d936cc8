"""Reconcile: make the rows of runs what their definition wants. Every path that changes what is true ends here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from itertools import chain
from uuid import UUID

from timeline import reasons
from timeline.definition import Definition
from timeline.exceptions import InvalidInput
from timeline.ids import fresh_ids
from timeline.lifecycle import RunEnd, Trigger
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import Entities
from timeline.models.facts import plan_of
from timeline.models.visits import tries_of, wanted_of
from timeline.operations._rebinding import rebinding
from timeline.operations._succeeding import succeed
from timeline.operations.current import running
from timeline.operations.leaving import end_runs
from timeline.operations.sets import portions_of
from timeline.planning import Cancel, Create, Keep, Move, Plan, TaskRow
from timeline.registry import registry
from timeline.runs import end
from timeline.store.competing import hand_on
from timeline.store.creating import new_task, send_tasks
from timeline.store.pipelining import pipelining
from timeline.store.rows_to_plan import lock_rows_to_plan
from timeline.store.writing import Write, send_writes

logger = logging.getLogger("timeline")

_Planned = tuple[TimelineRun, Definition, Plan]


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
        runs: Those that have ended are left as they are.
        entities: As locked; one that is missing is gone, unless it cannot be read.
        now: Story time.
        using: Database alias.
        lenient: Leave a run whose entity gives no proper time, or cannot be read, as it is, rather than raise: for a worker,
            which must record an outcome whatever the entity holds, and for an operator.
        there: Entities that are there, and were not read, as nothing is asked of them.
        moved: Whether they are runs of machines that have just moved.
        rows: Id of a run → what it is planned from, as far as that was read; what may change of it is locked.
        choose: Makes of what is planned for a run what is carried out; None: just that.

    Returns:
        The tasks created.

    Raises:
        DateOutOfRange, NaiveDatetime: if a field of an entity gives no proper time; nothing is changed then.
        UnreadableEntity: if one cannot be read, and its timeline follows what it holds.
    """
    known = [
        (run, definition)
        for run in runs
        if run.is_open and (definition := registry.about(run.timeline, run.entity_label))
    ]
    present = entities.keys() | entities.unreadable.keys() | set(there)
    gone = [run for run, definition in known if definition.label and run.entity_ref not in present]
    end_runs(gone, RunEnd.ENTITY_GONE, reason=reasons.DELETED(), now=now, using=using)
    alive = [(run, definition) for run, definition in known if run.is_open]
    unread = [(run, definition) for run, definition in alive if run.pk not in (rows or {})]
    standing = {**lock_rows_to_plan(wanted_of(unread, moved=moved), using=using), **(rows or {})}
    tries = tries_of(alive, using=using)
    # In portions: while the database writes one, the next is planned. Whole, if a run may be refused after others were
    # written, or if code of the host's is asked, which may want what cannot be asked ahead.
    whole = not lenient or choose is not None or any(entity is not None for entity in entities.values())
    whole = whole or any(definition.asks_of_holidays for _run, definition in alive)
    parts = portions_of(alive, whole=whole, using=using)
    written, nothing_left = list[Callable[[], list[ScheduledTask]]](), list[TimelineRun]()
    with pipelining(using) if len(parts) > 1 else nullcontext():
        for part in parts:
            planned = _plans_of(part, entities, standing, tries, now=now, lenient=lenient, choose=choose)
            read = chain.from_iterable(standing.get(run.pk, []) for run, _definition in part)
            written.append(_carry_out(planned, read, now=now, using=using))
            nothing_left += [run for run, _definition, plan in planned if not plan.open]
    created = [task for done in written for task in done()]
    end(nothing_left, RunEnd.FINISHED, now=now, using=using)
    succeed(nothing_left, now=now, using=using)
    return created


def _plans_of(
    alive: Iterable[tuple[TimelineRun, Definition]],
    entities: Entities,
    rows: Mapping[UUID, Sequence[TaskRow]],
    tries: Mapping[UUID, int],
    *,
    now: datetime,
    lenient: bool,
    choose: Callable[[TimelineRun, Plan], Plan] | None,
) -> list[_Planned]:
    plans: list[_Planned] = []
    for run, definition in alive:
        try:
            if definition.followed_fields and (unreadable := entities.unreadable.get(run.entity_ref)):
                raise unreadable
            entity, ours = entities.get(run.entity_ref), rows.get(run.pk, [])
            planned = plan_of(
                run, definition, entity, ours, now=now, spare=running(), tries=tries, foresees=not lenient
            )
            plans.append((run, definition, planned if choose is None else choose(run, planned)))
        except InvalidInput as error:
            if not lenient:
                raise
            logger.error("%s is not reconciled until its entity is mended: %s", run, error.in_english())
    return plans


def _carry_out(
    plans: Sequence[_Planned], rows: Iterable[TaskRow], *, now: datetime, using: str
) -> Callable[[], list[ScheduledTask]]:
    """Write what is planned, or send it on its way; give what gives the tasks created."""
    writes, tasks, ids = [], [], fresh_ids()
    for run, definition, planned in plans:
        for change in planned.changes:
            match change:
                case Cancel(row=ScheduledTask() as row, reason=reason):
                    writes.append(Write(task=row, triggers=(Trigger.CANCEL,), reason=reason))
                case Move(row=ScheduledTask() as row, times=times, reason=reason):
                    fingerprint = definition.tasks[row.task_name].fingerprint
                    writes.append(Write(task=row, times=times, definition_hash=fingerprint, reason=reason))
                case Create():
                    tasks.append(new_task(run, definition, change, key=next(ids), now=now))
                case Keep():
                    pass
    writes += rebinding([(definition, planned) for _run, definition, planned in plans], now=now, using=using)
    changed = send_writes(hand_on(writes, tasks, earlier=rows, using=using), now=now, using=using)
    created = send_tasks(tasks, using=using)

    def done() -> list[ScheduledTask]:
        changed()
        return created()

    return done
