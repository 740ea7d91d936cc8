"""Share: which kinds of ready tasks are taken next, and how many of each. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

MESSAGE: Final = 0.2  # Seconds of work in one message.
LARGEST: Final = 250  # Tasks in one message.


class Share(NamedTuple):
    """
    What to take of one kind.

    Args:
        task_key: The kind.
        priority: Of the tasks to take.
        size: No more than so many.
        since: Due time of the first of them, where that is known.
        on_hold: Whether some of the kind may have to be passed over, since entities are on hold.
    """

    task_key: str
    priority: int
    size: int
    since: datetime | None = None
    on_hold: bool = False


def shares(ready: Mapping[str, int], queues: Mapping[str, str], room: Mapping[str, int], *, most: int) -> list[Share]:
    """
    Divide what may be taken: by queue, so that none waits for another; in each queue only what is most urgent, in equal parts
    among kinds, so that none waits behind a flood of another.

    Args:
        ready: Kind → first priority among its ready tasks (smaller is more urgent). Where there is not room for one of each,
            those that stand first here are taken.
        queues: Kind → its queue.
        room: Queue → how many more tasks it takes; all of ``most`` where it is not named.
        most: At most so many of each queue.
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
    Say how many tasks of a kind one message carries: about 0.2 s of work, so that none of it waits long behind the others.

    Args:
        declared: How many of it are run together, where that is declared.
        seconds: What one task takes, as far as known; a new kind is sent one by one.
    """
    if declared is not None:
        return declared
    if seconds is None:
        return 1
    return int(max(1, min(MESSAGE / max(seconds, 1e-6), LARGEST)))
