"""Extend leases: say that a worker is still running its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.store.polling import polling


def extend_leases(attempts: Mapping[UUID, int], *, using: str) -> int:
    """
    Extend the leases of active tasks to ``TIMELINE["LEASE"]`` from now, by the database's real clock.

    A row that somebody else has locked is skipped, so that the others do not wait for it: the next beat extends it.

    Args:
        attempts: Id of a task → the running attempt; a task that is at another attempt is left alone.
        using: Database alias.

    Returns:
        How many were extended.
    """
    if not attempts:
        return 0
    with polling(using, flushes=False):
        active = ScheduledTask.objects.using(using).filter(pk__in=list(attempts), state=State.ACTIVE)
        held = active.by_id().only("pk", "attempt").locked(skip_locked=True)
        ours = [task.pk for task in held if task.attempt == attempts[task.pk]]
        return active.filter(pk__in=ours).update(lease_expires_at=MachineTime(get_settings().LEASE))
