"""Apportion: which ready tasks are claimed next, and how many of them one message carries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from math import ceil
from random import sample
from typing import Final, NamedTuple

from timeline.conf import get_settings
from timeline.planning import Share, batch_size, shares
from timeline.registry import registry
from timeline.store.kinds import Kind, look_at_kinds, ready_kinds

FEW: Final = 4  # Messages of a queue that wait for a worker at a time: busy workers go on by themselves.
MANY: Final = 16  # While no message waits: then workers seem to have nothing to do.


class _OnTheWay(NamedTuple):
    """
    Tasks of a queue that are claimed and not started.

    Args:
        tasks: All of them.
        messages: Their messages, if sent within two polls. An older message may be stuck with a busy worker.
    """

    tasks: int = 0
    messages: int = 0

    @property
    def room(self) -> int:
        """
        How many more tasks this queue may have. Below a quarter of the limit it is 0, because messages would be too small.
        """
        most = get_settings().MAX_PENDING
        free = most - self.tasks
        return free if free >= most / 4 else 0

    @property
    def wanted(self) -> int:
        """How many more messages this queue may have."""
        return max(FEW - self.messages, 0) if self.tasks else MANY


def apportion(*, most: int, leases_valid_at: datetime | None = None, using: str) -> tuple[list[Share], dict[str, int]]:
    """
    Share the free room among the kinds that have ready tasks.

    Args:
        most: At most so many tasks of each queue; but a whole message of tasks that are declared to run together.
        leases_valid_at: Machine time at which no lease had run out, if that is known.
        using: Database alias.

    Returns:
        What to claim, and task key → how many of its tasks one message carries. Nothing if none is ready, or enough is on
        its way.
    """
    first = ready_kinds(registry.task_keys(), using=using)
    if not first:
        return [], {}
    lately = get_settings().overdue_after
    kinds = look_at_kinds(registry.task_keys(), lately=lately, leases_valid_at=leases_valid_at, using=using)
    declared = {task_key: registry.task(task_key)[1] for task_key in kinds}
    sizes = {task_key: batch_size(declared[task_key].at_once, kind.seconds) for task_key, kind in kinds.items()}
    queues = {task_key: task.options.queue for task_key, task in declared.items()}
    # In random order, so that if there is room for only a few kinds, these are not always the same.
    ready = {task_key: first[task_key].priority for task_key in sample(list(first), len(first))}
    there = _by_queue(kinds, queues, sizes)
    left = {queue: found.room for queue, found in there.items()}
    taken = shares(ready, queues, left, most=most)
    several = Counter(queues[share.task_key] for share in taken)
    claimed = []
    for share in taken:
        queue = queues[share.task_key]
        message = sizes[share.task_key]
        # Tasks that are declared to run together go together: a smaller message takes as much time.
        whole = declared[share.task_key].at_once is not None
        asked = max(share.size // message, 1) * message if whole else share.size
        fitting = ceil(there[queue].wanted / several[queue]) * message
        if size := min(asked, fitting, left[queue]):
            left[queue] -= size
            claimed.append(
                share._replace(size=size, since=first[share.task_key].due_at, on_hold=first[share.task_key].on_hold)
            )
    return claimed, sizes


def _by_queue(kinds: Mapping[str, Kind], queues: Mapping[str, str], sizes: Mapping[str, int]) -> dict[str, _OnTheWay]:
    """Count the tasks and messages of each queue."""
    found = dict.fromkeys(queues.values(), _OnTheWay())
    for task_key, kind in kinds.items():
        queue = found[queues[task_key]]
        messages = ceil(kind.lately / sizes[task_key])
        found[queues[task_key]] = _OnTheWay(queue.tasks + kind.tasks, queue.messages + messages)
    return found
