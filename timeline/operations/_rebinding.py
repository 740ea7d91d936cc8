"""Rebind: make tasks due that wait for an entity, if their schedule leads to another entity now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from timeline import reasons
from timeline.definition import Definition
from timeline.lifecycle import ReasonCode, State, Trigger
from timeline.models import EntityRef, ScheduledTask
from timeline.planning import Keep, Plan
from timeline.store.announcing import announce
from timeline.store.awaiting import refs_led_to
from timeline.store.writing import Write
from timeline.timing import When


def rebinding(plans: Iterable[tuple[Definition, Plan]], *, now: datetime, using: str) -> list[Write]:
    """
    Find resting tasks whose schedule leads to another entity than the one they wait for. They become due at once, and then wait
    for the new entity.

    Args:
        plans: The plans of runs that the caller has locked with their entities.
        now: Story time.
        using: Database alias.

    Returns:
        The writes. This takes one statement for each path to another entity, and none if no task waits for an entity.
    """
    asked = [
        (task, when, path) for definition, planned in plans for task, when, path in _at_rest(definition, planned, now)
    ]
    if not asked:
        return []
    there = refs_led_to([(task.entity_ref, path) for task, _when, path in asked], using=using)
    writes = [
        Write(task=task, triggers=(Trigger.DUE,), scheduled_at=now, reason=reasons.AWAITS_ANOTHER(whose=when.whose))
        for (task, when, _path), of in zip(asked, there, strict=True)
        if of != _awaited(task)
    ]
    if writes:
        announce(using=using)
    return writes


def _at_rest(definition: Definition, planned: Plan, now: datetime) -> Iterator[tuple[ScheduledTask, When, str]]:
    """Tasks that wait because of their schedule, not because of their handler."""
    if not definition.awaited_fields:
        return
    for row in (change.row for change in planned.changes if isinstance(change, Keep)):
        when = definition.tasks[row.task_name].when if row.task_name in definition.tasks else None
        if when is None or not isinstance(when.awaits_of, str) or not isinstance(row, ScheduledTask):
            continue
        is_bound = row.awaits == " ".join(when.awaits)
        # A task that was moved may have failed before, and must not run early then.
        was_moved = row.reason_code == ReasonCode.MOVED and not (row.failures or row.lost)
        is_unbound = not row.awaits and (row.reason_code == ReasonCode.WAITING or was_moved)
        if row.state == State.RETRYABLE and row.scheduled_at > now and (is_bound or is_unbound):
            yield row, when, when.awaits_of


def _awaited(task: ScheduledTask) -> EntityRef | None:
    return EntityRef(task.awaits_label, task.awaits_id) if task.awaits else None
