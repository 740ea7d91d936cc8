"""Stage: what was waiting and is due becomes available."""

from __future__ import annotations

from datetime import datetime

from timeline.dialects import dialect_of
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask
from timeline.store.advancing import advance
from timeline.store.polling import polling
from timeline.store.probing import first_due
from timeline.store.writing import Write, apply


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
    if dialect_of(using).has_set_statements:
        # Most polls find nothing, and need no transaction for that.
        if (since := first_due(now=now, using=using)) is None:
            return 0
        return len(advance("due", Trigger.DUE, most=limit, since=since, now=now, using=using))
    with polling(using):
        tasks = list(ScheduledTask.objects.using(using).to_stage(now).locked(skip_locked=True)[:limit])
        return len(apply([Write(task=task, triggers=(Trigger.DUE,)) for task in tasks], now=now, using=using))
