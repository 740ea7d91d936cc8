"""Windows of tasks that are about to run, or to be tried again."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime, tzinfo

from django.utils import timezone

from timeline import reasons
from timeline.engine.attempting import Attempt
from timeline.exceptions import UnreadableEntity
from timeline.lifecycle import Reason
from timeline.models.facts import zone_of
from timeline.store.errors import catching

logger = logging.getLogger("timeline")


def is_outside(attempt: Attempt) -> Reason | None:
    """Why a task is cancelled whose time is outside its window, if the window says "cancel" and nobody chose this time."""
    task, hours = attempt.task, attempt.declared.options.window
    if hours is None or hours.outside != "cancel" or task.run_id is None or task.scheduled_at != task.nominal_at:
        return None
    return None if hours.is_open(task.nominal_at, _zone_of(attempt)) else reasons.OUTSIDE(hours=hours.said)


def next_opening(attempt: Attempt, at: datetime) -> datetime:
    """When a task is tried again that would otherwise be tried at the given time."""
    hours = attempt.declared.options.window
    if hours is None or attempt.task.run_id is None:
        return at
    caught: list[Exception] = []
    with catching(caught):
        return hours.next_open(at, _zone_of(attempt))
    logger.error("%s is tried again without its window, which cannot be read.", attempt.task, exc_info=caught[0])
    return at


def _zone_of(attempt: Attempt) -> tzinfo:
    with suppress(UnreadableEntity):
        return zone_of(attempt.definition, attempt.entity)
    return timezone.get_default_timezone()
