"""Pace: store how long handlers take, for the processes that make up the next messages."""

from __future__ import annotations

from collections.abc import Mapping

from timeline.clocks import MachineTime
from timeline.models.pace import Pace


def keep_paces(seconds: Mapping[str, float], *, using: str) -> None:
    """
    Store how long one task of a kind takes; the last value counts. One statement.

    Args:
        seconds: Task key → moving average.
        using: Database alias.
    """
    rows = [
        Pace(task_key=task_key, seconds=average, measured_at=MachineTime())
        for task_key, average in sorted(seconds.items())
    ]
    Pace.objects.using(using).bulk_create(
        rows, update_conflicts=True, unique_fields=["task_key"], update_fields=["seconds", "measured_at"]
    )
