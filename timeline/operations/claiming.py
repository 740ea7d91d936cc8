"""Claim: take available tasks for the way through a broker, in batches of one task key."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid4

from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask
from timeline.operations._polling import polling
from timeline.operations._transition import Write, apply
from timeline.registry import registry


class Batch(NamedTuple):
    """Claimed tasks of one key: what a message carries."""

    task_key: str
    token: UUID
    task_ids: list[UUID]


def claim(*, limit: int = 100, now: datetime, using: str) -> list[Batch]:
    """
    Claim available tasks that this process has handlers for. Safe in any number of copies at once.

    Args:
        limit: At most so many tasks in this call.
        now: Story time, for the log.
        using: Database alias.

    Returns:
        One batch for each task key; within it, tasks in the order they should run.
    """
    with polling(using):
        ready = ScheduledTask.objects.using(using).ready().with_handler(registry.task_keys())
        batches: dict[str, list[ScheduledTask]] = defaultdict(list)
        for task in ready.locked(skip_locked=True)[:limit]:
            batches[task.task_key].append(task)
        tokens = {task_key: uuid4() for task_key in batches}
        writes = [
            Write(task=task, triggers=(Trigger.CLAIM,), claim_token=tokens[task.task_key])
            for tasks in batches.values()
            for task in tasks
        ]
        apply(writes, now=now, using=using)
    return [Batch(task_key, tokens[task_key], [task.pk for task in tasks]) for task_key, tasks in batches.items()]
