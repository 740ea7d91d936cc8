"""Claim tasks of kinds with a limit: a message carries one task of each key, so that no place is idle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import UUID, uuid4

from timeline.conf import get_settings
from timeline.dispatch.claiming import ClaimedBatch
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask
from timeline.planning import batch_size
from timeline.registry import registry
from timeline.store.kinds import look_at_kinds
from timeline.store.limited_kinds import competing, limited_kinds
from timeline.store.limiting import find_waiting, leave_turn, take, turn_of

ANY_ATTEMPT = 2**31 - 1


def claim_limited(*, limit: int = 100, now: datetime, using: str) -> list[ClaimedBatch]:
    """
    Claim available tasks that can get a place, of kinds that this process has handlers for. See ``claim``.

    Args:
        limit: At most so many keys of each kind.
        now: Story time, for the log.
        using: Database alias.

    Returns:
        Batches in the order in which they should be sent; each claimed task has its place, so no message is sent in vain.
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
