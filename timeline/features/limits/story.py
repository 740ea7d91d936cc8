"""Places of limits, of which a clock gives one task after the other what it needs."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from timeline.engine.attempts import ANY_ATTEMPT
from timeline.features.holds.store import on_hold
from timeline.features.limits.places import LimitedKind, take
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask
from timeline.models.task import ScheduledTaskQuerySet
from timeline.registry import registry


def next_ready(tasks: ScheduledTaskQuerySet, *, using: str) -> ScheduledTask | None:
    """What is available and may be under way: it needs no place, has one, or one is free."""
    ready = tasks.ready()
    return next((task for task in ready if not task.limit_key or task.slot or _has_room(task, using)), None)


def with_place(task: ScheduledTask, token: UUID, *, now: datetime, using: str) -> ScheduledTask:
    """Claim the one whose turn it is, of the tasks that compete for the places of this one."""
    limit = registry.task(task.task_key)[1].limit
    [claimed] = take(
        Trigger.CLAIM,
        LimitedKind(task.task_key, limit.most if limit else 0, on_hold(using=using).has_entities),
        [task.limit_key],
        each=1,
        attempts=ANY_ATTEMPT,
        claim_token=token,
        now=now,
        using=using,
    )
    return claimed


def _has_room(task: ScheduledTask, using: str) -> bool:
    limit = registry.task(task.task_key)[1].limit
    held = ScheduledTask.objects.using(using).filter(limit_key=task.limit_key, slot__gt=0).count()
    return limit is not None and held < limit.most
