"""Stage: what was waiting and is due becomes available."""

from __future__ import annotations

from datetime import datetime

from timeline.lifecycle import State, Trigger
from timeline.models import ScheduledTask
from timeline.operations._advancing import advance, works_in_sets
from timeline.operations._polling import polling
from timeline.operations._transition import Write, apply


def stage(*, limit: int = 1000, now: datetime, using: str) -> int:
    """
    Make due tasks available, the longest due first. Safe in any number of copies at once.

    Args:
        limit: At most so many in this call.
        now: Story time.
        using: Database alias.

    Returns:
        How many; as many as ``limit`` means there may be more.
    """
    with polling(using):
        if works_in_sets(using):
            return len(advance("due", State.AVAILABLE, most=limit, now=now, using=using))
        tasks = list(ScheduledTask.objects.using(using).to_stage(now).locked(skip_locked=True)[:limit])
        return len(apply([Write(task=task, triggers=(Trigger.DUE,)) for task in tasks], now=now, using=using))
