"""
Claim and begin tasks of kinds with a limit: each gets a place, committed before any handler is entered. A message carries one
task of each key, so that no place is idle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import takewhile
from operator import attrgetter
from uuid import UUID, uuid4

from timeline.conf import get_settings
from timeline.dispatch.claim import ClaimedBatch, batch_size
from timeline.engine.attempts import ANY_ATTEMPT, Attempt, attempts_at
from timeline.features.limits.declaration import MAX_LIMIT, limit_of
from timeline.features.limits.places import (
    LimitedKind,
    WaitingKey,
    competing,
    find_waiting,
    leave_turn,
    limited_keys,
    limited_kinds,
    take,
    turn_of,
)
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.store.task_key_stats import left_out, look_at_kinds


def claim_limited(*, limit: int = 100, now: datetime, using: str) -> list[ClaimedBatch]:
    """
    Claim available tasks that can get a place, at most ``limit`` keys of each kind. See ``claim``. Each claimed task has its
    place, so no message is sent in vain.
    """
    ready = limited_kinds(limited_keys(), using=using)
    if not ready:
        return []
    settings = get_settings()
    seen = look_at_kinds([kind.task_key for kind in ready], lately=settings.overdue_after, using=using)
    rooms = {task_key: min(limit, settings.MAX_PENDING - found.tasks) for task_key, found in seen.items()}
    batches: list[ClaimedBatch] = []
    for kind in competing(kind for kind in ready if rooms[kind.task_key] > 0):
        room, declared = rooms[kind.task_key], registry.task(kind.task_key)[1]
        waiting = find_waiting(kind, most=room, using=using)
        token = uuid4()
        tasks = take(
            Trigger.CLAIM,
            kind,
            [key.limit_key for key in waiting],
            each=max(room // max(len(waiting), 1), 1),
            attempts=ANY_ATTEMPT,
            lease=settings.resend_after,
            claim_token=token,
            now=now,
            using=using,
        )
        size = batch_size(declared.at_once, seen[kind.task_key].seconds)
        batches += _batches(tasks, token, size, apart=not declared.is_async)
    return batches


def is_place_free(*, using: str) -> bool:
    """Whether the next look at the keys finds a waiting task that can get a place."""
    for kind in limited_kinds(limited_keys(), using=using):
        before = turn_of(kind.task_key, using=using)
        found = find_waiting(kind, most=1, using=using)
        leave_turn(kind.task_key, before, using=using)
        if found:
            return True
    return False


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


def _batches(tasks: Sequence[ScheduledTask], token: UUID, size: int, *, apart: bool) -> Iterator[ClaimedBatch]:
    """Put tasks of a kind into messages; ``apart``: no two tasks of the same key in one message."""
    rounds: dict[tuple[str, int], list[UUID]] = defaultdict(list)
    seen: dict[str, int] = defaultdict(int)
    for task in tasks:
        rounds[task.queue, seen[task.limit_key] if apart else 0].append(task.pk)
        seen[task.limit_key] += 1
    for (queue, _number), task_ids in rounds.items():
        for start in range(0, len(task_ids), size):
            yield ClaimedBatch(tasks[0].task_key, queue, token, task_ids[start : start + size])


class Places:
    """Where tasks with a limit come from. See ``timeline.hooks.Source``."""

    has: Callable[[ScheduledTask], object] = attrgetter("limit_key")

    def claim(self, *, limit: int, now: datetime, using: str) -> list[ClaimedBatch]:
        """Claim tasks that can get a place."""
        return claim_limited(limit=limit, now=now, using=using)

    def is_any_ready(self, *, using: str) -> bool:
        """Whether a waiting task can get a place."""
        return is_place_free(using=using)

    def groups(self, queue: str | None, *, using: str) -> Iterator[tuple[str, Callable[..., list[Attempt]]]]:
        """Kinds with tasks that wait for a place; no statement if no kind has a limit."""
        for kind in limited_kinds(limited_keys(queue), using=using):
            yield kind.task_key, partial(begin_limited, kind)

    def is_free(self, task: ScheduledTask, *, using: str) -> bool:
        """Whether the task needs no place, has one, or one is free."""
        if not task.limit_key or task.slot:
            return True
        limit = limit_of(registry.task(task.task_key)[1])
        held = ScheduledTask.objects.using(using).filter(limit_key=task.limit_key, slot__gt=0).count()
        return limit is not None and held < limit.most

    def claim_one(self, task: ScheduledTask, token: UUID, *, now: datetime, using: str) -> ScheduledTask:
        """Claim the one whose turn it is, of the tasks that compete for the places of this one."""
        limit = limit_of(registry.task(task.task_key)[1])
        kind = LimitedKind(task.task_key, limit.most if limit else 0, left_out(using=using).parts)
        keys = [task.limit_key]
        [claimed] = take(
            Trigger.CLAIM, kind, keys, each=1, attempts=ANY_ATTEMPT, claim_token=token, now=now, using=using
        )
        return claimed
