"""Apportion: which ready tasks are claimed next, and how many of them one message carries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from random import sample
from typing import Final

from django.db.models import Count

from timeline.conf import get_settings
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.models.kinds import ready_kinds
from timeline.operations.pacing import paces
from timeline.planning import Share, batch_size, shares
from timeline.registry import registry

FIRST: Final = 100  # Tasks of a new kind on their way at a time, until somebody knows how long they take.


def apportion(*, most: int, kept_until: datetime | None = None, using: str) -> tuple[list[Share], dict[str, int]]:
    """
    Share the room there is among the kinds that have ready tasks.

    Args:
        most: At most so many tasks of each queue.
        kept_until: Machine time at which no lease had run out, if that is known.
        using: Database alias.

    Returns:
        What to claim, and task key → how many of it one message carries. Nothing if none is ready, or enough is on its way.
    """
    first = ready_kinds(registry.task_keys(), using=using)
    if not first:
        return [], {}
    # In any order, so that where there is room for a few kinds, it is not always the same ones.
    ready = {task_key: first[task_key].priority for task_key in sample(list(first), len(first))}
    declared = {task_key: registry.task(task_key)[1] for task_key in ready}
    known, pending = paces(using=using), _pending(kept_until, using)
    queues = {task_key: task.options.queue for task_key, task in declared.items()}
    new = {task_key for task_key, task in declared.items() if task.at_once is None and task_key not in known}
    taken = [
        share._replace(size=min(share.size, FIRST - pending[share.task_key])) if share.task_key in new else share
        for share in shares(ready, queues, _room(queues, pending), most=most)
    ]
    sizes = {task_key: batch_size(task.at_once, known.get(task_key)) for task_key, task in declared.items()}
    return [share._replace(since=first[share.task_key].due_at) for share in taken if share.size > 0], sizes


def _pending(kept_until: datetime | None, using: str) -> dict[str, int]:
    """Task key → how many of it are on their way."""
    pending = ScheduledTask.objects.using(using).filter(state=State.PENDING)
    if kept_until is not None:  # Then all leases end later, and the part of the index before it has none that counts.
        pending = pending.filter(lease_expires_at__gte=kept_until)
    return defaultdict(int, pending.values_list("task_key").annotate(Count("pk")))


def _room(queues: Mapping[str, str], pending: Mapping[str, int]) -> dict[str, int]:
    """Queue → how many more may be on their way. Below a quarter there is none: messages would be too small to be worth it."""
    most = get_settings().MAX_PENDING
    room = dict.fromkeys(queues.values(), most)
    for known in registry:
        for name, task in known.tasks.items():
            if task.options.queue in room:
                room[task.options.queue] -= pending.get(known.task_key(name), 0)
    return {queue: free if free >= most / 4 else 0 for queue, free in room.items()}
