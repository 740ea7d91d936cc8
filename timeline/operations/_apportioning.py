"""Apportion: which ready tasks are claimed next, and how many of them one message carries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from math import ceil
from random import sample
from typing import Final, NamedTuple

from django.db.models import Count, Q

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.models.kinds import ready_kinds
from timeline.operations.pacing import paces
from timeline.planning import Share, batch_size, shares
from timeline.registry import registry

FEW: Final = 4  # Messages of a queue that wait for a worker at a time: whoever is at work goes on by itself.
MANY: Final = 16  # While none waits: then workers have nothing to do, as far as anybody can see.


class _OnTheWay(NamedTuple):
    """
    What of a queue is claimed and has not been started.

    Args:
        tasks: All.
        messages: Those that were sent within two polls. What has waited longer may be stuck with a worker that is busy.
    """

    tasks: int = 0
    messages: int = 0

    @property
    def room(self) -> int:
        """How many tasks more there may be in this queue. Below a quarter there is none: messages would be too small."""
        most = get_settings().MAX_PENDING
        free = most - self.tasks
        return free if free >= most / 4 else 0

    @property
    def wanted(self) -> int:
        """How many messages more there may be in this queue."""
        return max(FEW - self.messages, 0) if self.tasks else MANY


def apportion(*, most: int, kept_until: datetime | None = None, using: str) -> tuple[list[Share], dict[str, int]]:
    """
    Share the room there is among the kinds that have ready tasks.

    Args:
        most: At most so many tasks of each queue; but a whole message of those that are declared to run together.
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
    pending = _pending(kept_until, using)
    sizes = _sizes({*ready, *pending}, using)
    queues = {task_key: registry.task(task_key)[1].options.queue for task_key in sizes}
    there = _by_queue(pending, queues, sizes)
    left = {queue: found.room for queue, found in there.items()}
    taken = shares(ready, queues, left, most=most)
    kinds = Counter(queues[share.task_key] for share in taken)
    claimed = []
    for share in taken:
        queue = queues[share.task_key]
        message = sizes[share.task_key]
        # What is declared to run together goes together: a message of less takes no less time.
        whole = registry.task(share.task_key)[1].at_once is not None
        asked = max(share.size // message, 1) * message if whole else share.size
        fitting = ceil(there[queue].wanted / kinds[queue]) * message
        if size := min(asked, fitting, left[queue]):
            left[queue] -= size
            claimed.append(share._replace(size=size, since=first[share.task_key].due_at))
    return claimed, sizes


def _pending(kept_until: datetime | None, using: str) -> dict[str, tuple[int, int]]:
    """Task key → how many of it are on their way, and how many of these were claimed within two polls."""
    settings = get_settings()
    pending = ScheduledTask.objects.using(using).filter(state=State.PENDING)
    if kept_until is not None:  # Then all leases end later, and the part of the index before it has none that counts.
        pending = pending.filter(lease_expires_at__gte=kept_until)
    lately = Q(lease_expires_at__gte=MachineTime(settings.LEASE - settings.overdue_after))
    counts = pending.values_list("task_key").annotate(tasks=Count("pk"), lately=Count("pk", filter=lately))
    return {task_key: (tasks, recent) for task_key, tasks, recent in counts}


def _by_queue(
    pending: Mapping[str, tuple[int, int]], queues: Mapping[str, str], sizes: Mapping[str, int]
) -> dict[str, _OnTheWay]:
    """Count by queue; what we have no handler for is in none."""
    found = dict.fromkeys(queues.values(), _OnTheWay())
    for task_key in pending.keys() & queues.keys():
        tasks, lately = pending[task_key]
        queue = found[queues[task_key]]
        found[queues[task_key]] = _OnTheWay(queue.tasks + tasks, queue.messages + ceil(lately / sizes[task_key]))
    return found


def _sizes(task_keys: Iterable[str], using: str) -> dict[str, int]:
    """How many tasks one message carries, of those kinds that we know."""
    known, seconds = set(registry.task_keys()), paces(using=using)
    return {
        task_key: batch_size(registry.task(task_key)[1].at_once, seconds.get(task_key))
        for task_key in task_keys
        if task_key in known
    }
