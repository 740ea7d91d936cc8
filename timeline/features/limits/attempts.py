"""Begin attempts of kinds with a limit: each gets a place, committed before any handler is entered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile

from timeline.engine.attempts import ANY_ATTEMPT, Attempt, attempts_at
from timeline.features.limits.declaration import HALF_DONE, MAX_LIMIT
from timeline.features.limits.places import LimitedKind, WaitingKey, find_waiting, leave_turn, take, turn_of
from timeline.lifecycle import Trigger
from timeline.registry import registry
from timeline.store.transition import Write


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
    Start available tasks of one kind that can get a place: one of each key, or as many as places if they run side by side.

    One after the other, a second place of a key would be idle. Several start together only at their first attempt; a task that
    was tried before starts alone, when its key is first. Without ``retried``, nothing starts if it is the next.
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


def _go_on_behind(task_key: str, chosen: Sequence[WaitingKey], waiting: Sequence[WaitingKey], using: str) -> None:
    """Keys that were found and not chosen come first the next time."""
    if len(chosen) < len(waiting):
        leave_turn(task_key, chosen[-1].limit_key, using=using)


def without_places(writes: Sequence[Write]) -> Sequence[Write]:
    """
    Let tasks give up their places if their handler was not entered, now or before, nor that of a revision before them. Else a
    task that only looked and rests would hold up the very tasks that it waits for.
    """
    return [replace(write, slot=0) if _gives_up(write) else write for write in writes]


def _gives_up(write: Write) -> bool:
    return bool(write.task.slot) and not write.entered and not write.task.held_until.endswith(HALF_DONE)
