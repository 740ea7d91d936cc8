"""Claim: take available tasks to send them through a broker, in batches of one task key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from random import sample
from typing import NamedTuple
from uuid import UUID, uuid4

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.dispatch.apportioning import apportion
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask
from timeline.planning import Share
from timeline.planning.sharing import LARGEST
from timeline.registry import registry
from timeline.store.advancing import advance
from timeline.store.isolating import atomic
from timeline.store.kinds import ready_kinds
from timeline.store.polling import polling
from timeline.store.returning import RawRow
from timeline.store.writing import Write, apply


class ClaimedBatch(NamedTuple):
    """
    Claimed tasks of one key: the content of a message.

    Args:
        task_key: The key of all of them.
        queue: The queue of all of them, as declared.
        token: The token of the claim; only a message with this token starts them.
        task_ids: In the order in which they should run.
    """

    task_key: str
    queue: str
    token: UUID
    task_ids: list[UUID]


def claim(
    *, limit: int = 100, leases_valid_at: datetime | None = None, now: datetime, using: str
) -> list[ClaimedBatch]:
    """
    Claim available tasks that this process has handlers for. Several processes may do so at once.

    In each queue the most urgent tasks are taken, in equal parts among kinds. At most ``TIMELINE["MAX_PENDING"]`` tasks of a
    queue are on their way at a time (a little more, if several pollers look at the same moment). More urgent tasks may still
    overtake available tasks.

    Args:
        limit: At most so many tasks of each queue in this call.
        leases_valid_at: Machine time at which no lease had run out, if that is known; then tasks on their way are counted
            without reading index entries of tasks that have long left.
        now: Story time, for the log.
        using: Database alias.

    Returns:
        Batches in the order in which they should be sent; none: no task is ready, or enough are on their way.
    """
    taken, sizes = apportion(most=limit, leases_valid_at=leases_valid_at, using=using)
    if not taken:
        return []
    token, lease = uuid4(), get_settings().resend_after
    if dialect_of(using).has_set_statements:
        rows = advance(
            "shares",
            Trigger.CLAIM,
            lease=lease,
            claim_token=token,
            task_keys=[share.task_key for share in taken],
            priorities=[share.priority for share in taken],
            sizes=[share.size for share in taken],
            since=[share.since for share in taken],
            on_hold=taken[0].on_hold,
            now=now,
            using=using,
        )
    else:
        with atomic(using=using):
            tasks = [task for share in taken for task in _of(share, using)]
            writes = [Write(task=task, triggers=(Trigger.CLAIM,), claim_token=token, lease=lease) for task in tasks]
            rows = [task.__dict__ for task in apply(writes, now=now, using=using)]
    return list(_batches(rows, token, sizes))


def _of(share: Share, using: str) -> list[ScheduledTask]:
    ready = ScheduledTask.objects.using(using).ready().free().filter(task_key=share.task_key, priority=share.priority)
    return list((ready.not_of_held_entities() if share.on_hold else ready)[: share.size])


def is_anything_ready(*, using: str) -> bool:
    """Whether there are available tasks that this process has handlers for."""
    return bool(ready_kinds(registry.task_keys(), using=using))


def hand_back(batches: Sequence[ClaimedBatch], *, using: str) -> int:
    """
    Let the next poll send these batches again at once: they could not be sent, or their worker stops. This is no transition and
    makes no log entry. The messages do not count as lost, so they are then sent as if for the first time.

    Args:
        batches: The batches, as they were claimed, or as a rescue found them.
        using: Database alias.

    Returns:
        How many tasks were still claimed with these tokens.
    """
    pending = (
        ScheduledTask.objects.using(using)
        .on_their_way()
        .filter(
            pk__in=[task_id for batch in batches for task_id in batch.task_ids],
            claim_token__in=[batch.token for batch in batches],
        )
    )
    if not batches:
        return 0
    with polling(using):  # In the lock order; locked rows are skipped: their owner starts or ends them.
        held = [task.pk for task in pending.by_id().only("pk").locked(skip_locked=True)]
        return pending.filter(pk__in=held).update(
            lease_expires_at=MachineTime(timedelta(milliseconds=-1)), sent_at=None
        )


def find_delayed(task_keys: Sequence[str], *, using: str) -> ClaimedBatch | None:
    """
    Find claimed tasks that nobody has started for two polls: their message waits for a busy worker, or got lost.

    If there are several messages of this kind, one is chosen at random, so that not all processes find the same one. Tasks that
    were handed back are left for the next poll to send again.

    Args:
        task_keys: Kinds to look for.
        using: Database alias.

    Returns:
        The tasks of the message that have not been started; None: there is no delayed message.
    """
    tasks = ScheduledTask.objects.using(using).waiting_since(get_settings().overdue_after)
    waiting = tasks.with_handler(task_keys)
    messages = messages_of(waiting[:LARGEST])
    return sample(messages, 1)[0] if messages else None


def messages_of(tasks: Iterable[ScheduledTask]) -> list[ClaimedBatch]:
    """The messages that carry these claimed tasks: each with its tasks that were given, in the given order."""
    carried: dict[tuple[str, str, UUID], list[UUID]] = defaultdict(list)
    for task in tasks:
        if task.claim_token is not None:
            carried[task.task_key, task.queue, task.claim_token].append(task.pk)
    return [ClaimedBatch(*kind, task_ids) for kind, task_ids in carried.items()]


def _batches(rows: Sequence[RawRow], token: UUID, sizes: Mapping[str, int]) -> Iterator[ClaimedBatch]:
    kinds: dict[tuple[str, str], list[UUID]] = defaultdict(list)
    for row in rows:
        kinds[row["task_key"], row["queue"]].append(row["id"])
    for (task_key, queue), task_ids in kinds.items():
        for start in range(0, len(task_ids), sizes[task_key]):
            yield ClaimedBatch(task_key, queue, token, task_ids[start : start + sizes[task_key]])
