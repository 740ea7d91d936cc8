"""Rebind: have tasks look anew whose schedule leads to another entity than the one that they wait for."""

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
    Find those at rest whose entity leads to another one now: they are due at once, and rest again for that.

    Args:
        plans: Of runs that the caller has locked, with their entities.
        now: Story time.
        using: Database alias.

    Returns:
        What is to be written. One statement for each way to another entity; none, where nothing waits for one.
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
    """Tasks that rest for what their schedule says, and not for what their handler does."""
    if not definition.awaited_fields:
        return
    for row in (change.row for change in planned.changes if isinstance(change, Keep)):
        when = definition.tasks[row.task_name].when if row.task_name in definition.tasks else None
        if when is None or not isinstance(when.awaits_of, str) or not isinstance(row, ScheduledTask):
            continue
        is_bound = row.awaits == " ".join(when.awaits)
        # What was moved may also be what has failed, and must not run early.
        was_moved = row.reason_code == ReasonCode.MOVED and not (row.failures or row.lost)
        is_unbound = not row.awaits and (row.reason_code == ReasonCode.WAITING or was_moved)
        if row.state == State.RETRYABLE and row.scheduled_at > now and (is_bound or is_unbound):
            yield row, when, when.awaits_of


def _awaited(task: ScheduledTask) -> EntityRef | None:
    return EntityRef(task.awaits_label, task.awaits_id) if task.awaits else None
