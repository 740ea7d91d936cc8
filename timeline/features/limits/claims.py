"""Claim tasks of kinds with a limit: a message carries one task of each key, so that no place is idle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import UUID, uuid4

from timeline.conf import get_settings
from timeline.dispatch.claim import ClaimedBatch, batch_size
from timeline.engine.attempts import ANY_ATTEMPT
from timeline.features.limits.places import competing, find_waiting, leave_turn, limited_kinds, take, turn_of
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.store.task_key_stats import look_at_kinds


def claim_limited(*, limit: int = 100, now: datetime, using: str) -> list[ClaimedBatch]:
    """
    Claim available tasks that can get a place, at most ``limit`` keys of each kind. See ``claim``. Each claimed task has its
    place, so no message is sent in vain.
    """
    ready = limited_kinds(registry.limited(), using=using)
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
    for kind in limited_kinds(registry.limited(), using=using):
        before = turn_of(kind.task_key, using=using)
        found = find_waiting(kind, most=1, using=using)
        leave_turn(kind.task_key, before, using=using)
        if found:
            return True
    return False


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
