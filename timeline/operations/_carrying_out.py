"""Plan runs from their locked rows, and carry the plans out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from timeline.definition import Definition
from timeline.exceptions import InvalidInput
from timeline.ids import fresh_ids
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.entities import Entities
from timeline.models.facts import plan_of
from timeline.operations._rebinding import rebinding
from timeline.operations.current import running
from timeline.planning import Cancel, Create, Keep, Move, Plan, TaskRow
from timeline.store.competing import hand_on
from timeline.store.creating import new_task, send_tasks
from timeline.store.writing import Write, send_writes

logger = logging.getLogger("timeline")

Planned = tuple[TimelineRun, Definition, Plan]


def plans_of(
    alive: Iterable[tuple[TimelineRun, Definition]],
    entities: Entities,
    rows: Mapping[UUID, Sequence[TaskRow]],
    tries: Mapping[UUID, int],
    *,
    now: datetime,
    lenient: bool,
    choose: Callable[[TimelineRun, Plan], Plan] | None = None,
) -> list[Planned]:
    """Plan open runs; arguments and errors as for ``reconcile_locked``. ``tries``: what ``tries_of`` gives for the runs."""
    plans: list[Planned] = []
    for run, definition in alive:
        try:
            if definition.followed_fields and (unreadable := entities.unreadable.get(run.entity_ref)):
                raise unreadable
            entity, ours = entities.get(run.entity_ref), rows.get(run.id, [])
            planned = plan_of(
                run, definition, entity, ours, now=now, spare=running(), tries=tries, foresees=not lenient
            )
            plans.append((run, definition, planned if choose is None else choose(run, planned)))
        except InvalidInput as error:
            if not lenient:
                error.of(run.entity_ref)
                raise
            logger.error("%s is not reconciled until its entity is mended: %s", run, error.in_english())
    return plans


def carry_out(
    plans: Sequence[Planned], rows: Iterable[TaskRow], *, now: datetime, using: str
) -> Callable[[], list[ScheduledTask]]:
    """Write the changes of plans, or send them without waiting. Call the result to get the tasks created."""
    writes, tasks = changes_of(plans, now=now)
    if any(definition.awaited_fields for _run, definition, _planned in plans):
        writes += rebinding([(definition, planned) for _run, definition, planned in plans], now=now, using=using)
    if any(task.previous_id is not None for task in tasks):
        writes = hand_on(writes, tasks, earlier=rows, using=using)
    changed = send_writes(writes, now=now, using=using)
    created = send_tasks(tasks, using=using) if tasks else list[ScheduledTask]

    def done() -> list[ScheduledTask]:
        changed()
        return created()

    return done


def changes_of(plans: Iterable[Planned], *, now: datetime) -> tuple[list[Write], list[ScheduledTask]]:
    """The rows to write for plans: changes of existing rows, and new rows."""
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
    return writes, tasks
