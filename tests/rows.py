"""Rows as tests want them, however they would have come there."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from timeline.lifecycle import FINAL, LEASED, State
from timeline.models import ScheduledTask

NOW: Final = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def make_task(**columns: Any) -> ScheduledTask:
    """Make an ad hoc row in any state, as if it had come there: ``make_task(state=State.PENDING, …)``."""
    task = _unsaved(**columns)
    task.save(force_insert=True)
    return task


def make_tasks(rows: Iterable[dict[str, Any]]) -> list[ScheduledTask]:
    """Make many such rows by a few statements, each of its columns: ``make_tasks({"state": state} for state in State)``."""
    return ScheduledTask.objects.bulk_create(_unsaved(**columns) for columns in rows)


def _unsaved(**columns: Any) -> ScheduledTask:
    state = columns.setdefault("state", State.SCHEDULED)
    columns.setdefault("task_key", "trial.remind")
    columns.setdefault("nominal_at", NOW)
    columns.setdefault("scheduled_at", columns["nominal_at"])
    columns.setdefault("created_at", NOW)
    columns.setdefault("max_attempts", 5)
    if state in FINAL:
        columns.setdefault("finished_at", NOW)
        columns.setdefault("reason_code", "done" if state == State.COMPLETED else "operator")
    if state in LEASED:
        columns.setdefault("lease_expires_at", datetime(2999, 1, 1, tzinfo=UTC))
    task = ScheduledTask(**columns)
    task.occurrence = task.occurrence or str(task.pk)
    return task
