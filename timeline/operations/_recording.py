"""Record outcomes: those of a group in one transaction; what cannot be written so, one by one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from django.db import DatabaseError, InterfaceError

from timeline.exceptions import LeaseLost
from timeline.models import ScheduledTask
from timeline.operations._failing import drop_if_lost
from timeline.operations._settling import settle
from timeline.operations._transition import Write

logger = logging.getLogger("timeline")


def record(write: Write, *, now: datetime, using: str) -> ScheduledTask:
    """
    Record one outcome, in the caller's transaction or in one of its own.

    Raises:
        LeaseLost: if the attempt was no longer ours: cancelled meanwhile, or given up for lost.
    """
    done = settle([write], now=now, using=using)
    if not done:
        raise LeaseLost(write.task.id, write.task.attempt)
    return done[0]


def record_all(writes: Sequence[Write], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Record the outcomes of a group; those whose attempt was no longer ours are left, with a word in the log.

    Rows that somebody else has locked do not hold up their neighbours, and an outcome that the database refuses does not take
    theirs with it: these are written one by one, afterwards.

    Returns:
        The tasks with their outcomes.
    """
    done: list[ScheduledTask] = []
    if len(writes) > 1:
        try:
            done = settle(writes, now=now, using=using, wait=False)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The outcomes of %d tasks are written one by one: %s", len(writes), error)
            drop_if_lost(error, using)
    settled = {task.id for task in done}
    for write in writes:
        if write.task.id not in settled:
            try:
                done.append(record(write, now=now, using=using))
            except LeaseLost as error:
                logger.warning("%s", error)
    return done
