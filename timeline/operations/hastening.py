"""Run now: make waiting tasks due at once. Their guards are still checked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from timeline.lifecycle import Reason, Trigger
from timeline.models import ScheduledTask
from timeline.operations._seen import Seen, refuse_changed
from timeline.store.announcing import announce
from timeline.store.isolating import atomic
from timeline.store.locking import lock_tasks
from timeline.store.writing import Write, apply


def run_now(
    *, task_ids: Sequence[UUID], reason: Reason, now: datetime, using: str, seen: Seen | None = None
) -> list[ScheduledTask]:
    """
    Make waiting tasks due at once.

    Args:
        task_ids: Primary keys, any number; all become available or none.
        reason: Text shown to people, and who decided.
        now: Story time of the decision. It becomes the due time of tasks that were due later.
        using: Database alias the tasks live in.
        seen: Task id → its ``seq`` when it was shown to the person who decides; None: nothing is checked.

    Returns:
        The tasks, in state ``available``, in the order given.

    Raises:
        ScheduledTask.DoesNotExist: if one of them is not there.
        ChangedSince: if one of them has changed since it was seen.
        TransitionNotAllowed: if one of them is due already, or has ended; nothing is changed then.
    """
    with atomic(using=using):
        tasks = lock_tasks(task_ids, using=using)
        refuse_changed(tasks, seen)
        writes = [
            Write(task=task, triggers=(Trigger.DUE,), scheduled_at=min(now, task.scheduled_at), reason=reason)
            for task in tasks
        ]
        announce(using=using)
        return apply(writes, now=now, using=using)
