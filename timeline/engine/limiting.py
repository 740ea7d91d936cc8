"""Begin attempts of kinds with a limit: each gets a place, committed before any handler is entered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile

from timeline.definition.limits import MAX_LIMIT
from timeline.engine.attempting import ANY_ATTEMPT, Attempt, attempts_at
from timeline.lifecycle import Trigger
from timeline.registry import registry
from timeline.store.limited_kinds import LimitedKind
from timeline.store.limiting import Waiting, find_waiting, leave_turn, take, turn_of


def begin_limited(
    kind: LimitedKind,
    *,
    most: int,
    worker: str,
    retried: bool = True,
    now: datetime,
    using: str,
) -> list[Attempt]:
    """
    Start available tasks of one kind that can get a place. Normally one of each key, because they run one after the other
    and a place that waits would be idle; if they run side by side, as many as there are places.

    Several tasks are started together only at their first attempt; a task that was tried before is started alone, when its
    key is first.

    Args:
        kind: The kind of the tasks.
        most: Start at most so many.
        worker: Name of the worker, as shown on the row.
        retried: Whether a task that was tried before may be started; if not, and it is the next, nothing is started.
        now: Story time.
        using: Database alias.
    """
    before = turn_of(kind.task_key, using=using)
    waiting = find_waiting(kind, most=most, using=using)
    together = list(takewhile(lambda key: not key.attempt, waiting))
    again = bool(waiting) and not together
    if again and not retried:
        leave_turn(kind.task_key, before, using=using)
        return []
    chosen = waiting[:1] if again else together
    _go_on_behind(kind.task_key, chosen, waiting, using)
    is_async = registry.task(kind.task_key)[1].is_async
    tasks = take(
        Trigger.START,
        kind,
        [key.limit_key for key in chosen],
        each=min(most, MAX_LIMIT) if is_async and not again else 1,
        attempts=ANY_ATTEMPT if again else 0,
        worker=worker,
        now=now,
        using=using,
    )
    return attempts_at(tasks, now=now, using=using)


def _go_on_behind(task_key: str, chosen: Sequence[Waiting], waiting: Sequence[Waiting], using: str) -> None:
    """Keys that were found and not chosen come first the next time."""
    if len(chosen) < len(waiting):
        leave_turn(task_key, chosen[-1].limit_key, using=using)
