"""Claim: take available tasks for the way through a broker, in batches of one task key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask
from timeline.operations._polling import polling
from timeline.operations._transition import Write, apply
from timeline.registry import registry

LARGEST: Final = 10  # Tasks in one message: what waits behind a slow one is little.


class Batch(NamedTuple):
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


def claim(*, limit: int = 100, now: datetime, using: str) -> list[Batch]:
    """
    Claim available tasks that this process has handlers for. Safe in any number of copies at once.

    No more than ``TIMELINE["MAX_PENDING"]`` tasks are on their way at a time (a little more, if several pollers look at the
    same moment): what stays available can still be overtaken by what is more urgent.

    Args:
        limit: At most so many tasks in this call.
        now: Story time, for the log.
        using: Database alias.

    Returns:
        Batches in the order they should be sent.
    """
    most = get_settings().MAX_PENDING
    with polling(using):
        tasks = ScheduledTask.objects.using(using)
        room = most - tasks.on_their_way()[:most].count()
        ready = tasks.ready().with_handler(registry.task_keys()).locked(skip_locked=True)[: max(min(limit, room), 0)]
        batches = list(_batches(list(ready)))
        writes = [
            Write(task=task, triggers=(Trigger.CLAIM,), claim_token=batch.token)
            for batch, claimed in batches
            for task in claimed
        ]
        apply(writes, now=now, using=using)
    return [batch for batch, _claimed in batches]


def hand_back(batches: Sequence[Batch], *, using: str) -> int:
    """
    Let the next poll send these again at once: they could not be sent, or their worker stops. No transition, no log entry.

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
    return pending.update(lease_expires_at=MachineTime(timedelta(milliseconds=-1))) if batches else 0


def _batches(tasks: Sequence[ScheduledTask]) -> Iterator[tuple[Batch, Sequence[ScheduledTask]]]:
    kinds: dict[tuple[str, str], list[ScheduledTask]] = defaultdict(list)
    for task in tasks:
        kinds[task.task_key, task.queue].append(task)
    for (task_key, queue), of_kind in kinds.items():
        for start in range(0, len(of_kind), LARGEST):
            claimed = of_kind[start : start + LARGEST]
            yield Batch(task_key, queue, uuid4(), [task.pk for task in claimed]), claimed
