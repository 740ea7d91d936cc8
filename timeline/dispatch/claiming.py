"""Claim: take available tasks for the way through a broker, in batches of one task key."""

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
from timeline.store.kinds import ready_kinds
from timeline.store.polling import polling
from timeline.store.returning import RawRow
from timeline.store.writing import Write, apply


class ClaimedBatch(NamedTuple):
    """
    Claimed tasks of one key: what a message carries.

    Args:
        task_key: Of all of them.
        queue: Of all of them, as declared.
        token: Of the claim; only a message that carries it starts them.
        task_ids: In the order they should run.
    """

    task_key: str
    queue: str
    token: UUID
    task_ids: list[UUID]


def claim(
    *, limit: int = 100, leases_valid_at: datetime | None = None, now: datetime, using: str
) -> list[ClaimedBatch]:
    """
    Claim available tasks that this process has handlers for. Safe in any number of copies at once.

    Of each queue the most urgent are taken, in equal parts among kinds. No more than ``TIMELINE["MAX_PENDING"]`` tasks of a
    queue are on their way at a time (a little more, if several pollers look at the same moment): what stays available can still
    be overtaken by what is more urgent.

    Args:
        limit: At most so many tasks of each queue in this call.
        leases_valid_at: Machine time at which no lease had run out, if that is known; with it, what is on its way is counted
            without reading what has left long ago.
        now: Story time, for the log.
        using: Database alias.

    Returns:
        Batches in the order they should be sent; none: nothing is ready, or enough is on its way.
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
        with polling(using):
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
    Let the next poll send these again at once: they could not be sent, or their worker stops. No transition, no log entry; and
    no message is lost, so that it is sent then as if for the first time.

    Args:
        batches: As they were claimed, or found by a rescue.
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
    with polling(using):  # In the lock order, and past what somebody else has: they start it, or end it.
        held = [task.pk for task in pending.by_id().only("pk").locked(skip_locked=True)]
        return pending.filter(pk__in=held).update(
            lease_expires_at=MachineTime(timedelta(milliseconds=-1)), sent_at=None
        )


def find_delayed(task_keys: Sequence[str], *, using: str) -> ClaimedBatch | None:
    """
    Find claimed tasks that nobody has started for two polls: their message waits for a worker that is busy, or got lost.

    If there are several messages, one of them is drawn by lot, so that not all who look find the same one. What was handed
    back is left for the next poll to send again.

    Args:
        task_keys: Kinds to look for.
        using: Database alias.

    Returns:
        What the message carried, as far as it is still to be started; None: there is none.
    """
    tasks = ScheduledTask.objects.using(using).waiting_since(get_settings().overdue_after)
    waiting = tasks.with_handler(task_keys)
    messages = messages_of(waiting[:LARGEST])
    return sample(messages, 1)[0] if messages else None


def messages_of(tasks: Iterable[ScheduledTask]) -> list[ClaimedBatch]:
    """The messages that carry these claimed tasks: each with what is given of it, in that order."""
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
