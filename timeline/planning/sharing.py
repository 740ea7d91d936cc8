"""Share: decide which kinds of ready tasks are taken next, and how many of each. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

MESSAGE: Final = 0.2  # Seconds of work in one message.
LARGEST: Final = 250  # Tasks in one message.


class Share(NamedTuple):
    """
    How much to take of one kind.

    Args:
        task_key: The kind.
        priority: The priority of the tasks to take.
        size: At most so many tasks.
        since: Due time of the first of these tasks, if it is known.
        on_hold: Whether entities are on hold, so that some tasks of the kind may have to be skipped.
    """

    task_key: str
    priority: int
    size: int
    since: datetime | None = None
    on_hold: bool = False


def shares(ready: Mapping[str, int], queues: Mapping[str, str], room: Mapping[str, int], *, most: int) -> list[Share]:
    """
    Divide the room: queue by queue, so that no queue waits for another. In each queue only the most urgent kinds get a
    share, in equal parts, so that no kind waits behind many tasks of another.

    Args:
        ready: Kind → first priority among its ready tasks (smaller is more urgent). If there is not room for one of each, the
            first kinds in this order are taken.
        queues: Kind → its queue.
        room: Queue → how many more tasks it takes; a queue that is not in it takes ``most``.
        most: At most so many tasks of each queue.
    """
    by_queue: dict[str, list[str]] = defaultdict(list)
    for task_key in ready:
        by_queue[queues[task_key]].append(task_key)
    taken = []
    for queue, task_keys in by_queue.items():
        size = min(room.get(queue, most), most)
        first = min(ready[task_key] for task_key in task_keys)
        urgent = [task_key for task_key in task_keys if ready[task_key] == first][: max(size, 0)]
        taken += [Share(task_key, first, size // len(urgent)) for task_key in urgent]
    return taken


def batch_size(declared: int | None, seconds: float | None) -> int:
    """
    The number of tasks of a kind in one message: about 0.2 s of work, so that no task waits long behind the others.

    Args:
        declared: How many tasks are run together, if that is declared.
        seconds: How long one task takes, if that is known; tasks of a new kind are sent one by one.
    """
    if declared is not None:
        return declared
    if seconds is None:
        return 1
    return int(max(1, min(MESSAGE / max(seconds, 1e-6), LARGEST)))
