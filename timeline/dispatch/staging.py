"""Stage: waiting tasks that are due become available."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from timeline.dialects import dialect_of
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask, Wake
from timeline.operations.waking_others import wake_noted
from timeline.store.advancing import advance
from timeline.store.isolating import atomic
from timeline.store.probing import probe_waiting
from timeline.store.writing import Write, apply


class Staged(NamedTuple):
    """
    What was staged.

    Args:
        tasks: How many tasks have become available; ``limit`` or more means that there may be more.
        some_available: Whether there may be available tasks, these or others.
    """

    tasks: int
    some_available: bool = True


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
    return stage_and_tell(limit=limit, now=now, using=using).tasks


def stage_and_tell(*, limit: int, now: datetime, using: str) -> Staged:
    """Stage as ``stage`` does, and tell whether anything is available: if not, nobody needs to look for it."""
    if dialect_of(using).has_set_statements:
        # Most polls find nothing, and then need no transaction.
        found = probe_waiting(now=now, using=using)
        woken = wake_noted(now=now, using=using) if found.some_noted else 0
        if found.first_due is None:
            return Staged(woken, found.some_available or woken > 0)
        return Staged(woken + len(advance("due", Trigger.DUE, most=limit, since=found.first_due, now=now, using=using)))
    woken = wake_noted(now=now, using=using) if Wake.objects.using(using).exists() else 0
    with atomic(using=using):
        tasks = list(ScheduledTask.objects.using(using).to_stage(now).locked(skip_locked=True)[:limit])
        due = apply([Write(task=task, triggers=(Trigger.DUE,)) for task in tasks], now=now, using=using)
        return Staged(woken + len(due))
