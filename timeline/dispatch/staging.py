"""Stage: waiting tasks that are due become available."""

from __future__ import annotations

from datetime import datetime

from timeline.dialects import dialect_of
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask, Wake
from timeline.operations.waking_others import wake_noted
from timeline.store.advancing import advance
from timeline.store.isolating import atomic
from timeline.store.probing import probe_waiting
from timeline.store.writing import Write, apply


def stage(*, limit: int = 1000, now: datetime, using: str) -> int:
    """
    Make due tasks available, the longest due first, and wake the tasks that notes name. Several processes may do so at once.

    Args:
        limit: At most so many in this call.
        now: Story time.
        using: Database alias.

    Returns:
        How many tasks; ``limit`` or more means that there may be more.
    """
    if dialect_of(using).has_set_statements:
        # Most polls find nothing, and then need no transaction.
        found = probe_waiting(now=now, using=using)
        woken = wake_noted(now=now, using=using) if found.some_noted else 0
        if found.first_due is None:
            return woken
        return woken + len(advance("due", Trigger.DUE, most=limit, since=found.first_due, now=now, using=using))
    woken = wake_noted(now=now, using=using) if Wake.objects.using(using).exists() else 0
    with atomic(using=using):
        tasks = list(ScheduledTask.objects.using(using).to_stage(now).locked(skip_locked=True)[:limit])
        return woken + len(apply([Write(task=task, triggers=(Trigger.DUE,)) for task in tasks], now=now, using=using))
