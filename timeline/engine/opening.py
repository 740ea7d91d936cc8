"""Windows of tasks that are about to run, or to be tried again."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, tzinfo

from django.utils import timezone

from timeline import reasons
from timeline.engine.attempting import Attempt
from timeline.exceptions import UnreadableEntity
from timeline.lifecycle import Reason
from timeline.models.facts import zone_of


def is_outside(attempt: Attempt) -> Reason | None:
    """Why a task is cancelled whose time is outside of its window, where that says so; not where somebody gave it its time."""
    task, hours = attempt.task, attempt.declared.options.window
    if hours is None or hours.outside != "cancel" or task.run_id is None or task.scheduled_at != task.nominal_at:
        return None
    return None if hours.is_open(task.nominal_at, _zone_of(attempt)) else reasons.OUTSIDE(hours=hours.said)


def next_opening(attempt: Attempt, at: datetime) -> datetime:
    """When a task is tried again that would be so at this time."""
    hours = attempt.declared.options.window
    return at if hours is None or attempt.task.run_id is None else hours.next_open(at, _zone_of(attempt))


def _zone_of(attempt: Attempt) -> tzinfo:
    with suppress(UnreadableEntity):
        return zone_of(attempt.definition, attempt.entity)
    return timezone.get_default_timezone()
