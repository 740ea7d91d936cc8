"""Extend: say that a worker is still at it."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.lifecycle import State
from timeline.models import ScheduledTask


def extend_leases(attempts: Mapping[UUID, int], *, using: str) -> int:
    """
    Extend the leases of active tasks to ``TIMELINE["LEASE"]`` from now, by the database's real clock.

    Args:
        attempts: Id of a task → the attempt that is being run; a task that has moved on is left alone.
        using: Database alias.

    Returns:
        How many were extended.
    """
    extended = 0
    for task_id, attempt in attempts.items():
        held = ScheduledTask.objects.using(using).filter(pk=task_id, state=State.ACTIVE, attempt=attempt)
        extended += held.update(lease_expires_at=MachineTime(get_settings().LEASE))
    return extended
