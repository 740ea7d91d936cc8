"""Rescue: tasks whose lease ran out. What a dead worker was running is run again; a lost message is to be sent again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db.models import Count, F

from timeline.conf import get_settings
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.models import LogEntry, ScheduledTask
from timeline.operations._polling import polling
from timeline.operations._settling import settle
from timeline.operations._transition import Write, apply

LONGEST_RESEND: Final = timedelta(hours=1)


class Rescued(NamedTuple):
    """
    What was done.

    Args:
        retried: Attempts given up for lost; the tasks are due again at once.
        discarded: Tasks that lost their last attempt.
        resend: Claimed tasks whose message got lost. They keep their token; send it again.
    """

    retried: list[ScheduledTask]
    discarded: list[ScheduledTask]
    resend: list[ScheduledTask]


def rescue(*, limit: int = 100, now: datetime, using: str) -> Rescued:
    """
    Give up attempts and messages whose lease ran out, by the database's real clock.

    The first attempt of a task that is lost does not count against ``TIMELINE["MAX_LOST"]``: it may have been a neighbour's
    fault. Each resend of a message doubles the time to the next, up to an hour.

    Args:
        limit: At most so many tasks in this call.
        now: Story time, for the log.
        using: Database alias.
    """
    # A discard settles its run, which locks entity and run before the task: so it comes in a transaction of its own, and
    # the guard of its write repeats that the attempt is still the one given up.
    with polling(using):
        tasks = list(ScheduledTask.objects.using(using).given_up().locked(skip_locked=True)[:limit])
        lost = [_lost(task, now) for task in tasks if task.state == State.ACTIVE]
        resend = _resends([task for task in tasks if task.state == State.PENDING], using)
        resent = apply(resend, now=now, using=using)
        given_up = apply([write for write in lost if write.triggers == (Trigger.RETRY,)], now=now, using=using)
    last = [write for write in lost if write.triggers == (Trigger.DISCARD,)]
    return Rescued(given_up, settle(last, now=now, using=using), resent)


def _lost(task: ScheduledTask, now: datetime) -> Write:
    counted = int(task.attempt > 1)
    left = task.lost + counted < get_settings().MAX_LOST
    worker = f" {task.worker}" if task.worker else ""
    return Write(
        task=task,
        triggers=(Trigger.RETRY if left else Trigger.DISCARD,),
        scheduled_at=now if left else None,
        lost=counted,
        reason=Reason(ReasonCode.WORKER_LOST, f"worker{worker} was not heard of until its lease ran out"),
    )


def _resends(tasks: Sequence[ScheduledTask], using: str) -> list[Write]:
    """Lengthen the leases of claimed tasks: twice as long as at their last sending, which the log counts."""
    log = LogEntry.objects.using(using).filter(task__in=tasks, attempt=F("task__attempt"), detail__has_key="resend")
    sent = dict(log.order_by().values_list("task").annotate(Count("pk")))
    writes = []
    for task in tasks:
        times = sent.get(task.pk, 0) + 1
        lease = min(get_settings().LEASE * 2 ** min(times, 20), LONGEST_RESEND)
        writes.append(Write(task=task, lease=lease, evidence={"resend": times}))
    return writes
