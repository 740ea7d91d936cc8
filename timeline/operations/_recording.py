"""Record outcomes: those of a group in one transaction; what cannot be written so, one by one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from timeline.exceptions import LeaseLost
from timeline.models import ScheduledTask
from timeline.operations._attempting import Attempt
from timeline.operations._failing import catching, drop_if_lost, failed, is_passing
from timeline.operations._settling import settle
from timeline.operations._transition import Write

logger = logging.getLogger("timeline")


def record(write: Write, *, now: datetime, using: str) -> ScheduledTask:
    """
    Record one outcome, in the caller's transaction or in one of its own.

    Raises:
        LeaseLost: if the attempt was no longer ours: cancelled meanwhile, or given up for lost.
    """
    return record_together([write], now=now, using=using)[0]


def record_together(writes: Sequence[Write], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Record outcomes in the transaction that the caller shares among them: all, or it must undo what it did.

    Raises:
        LeaseLost: if one of the attempts was no longer ours.
    """
    done = settle(writes, now=now, using=using)
    if len(done) < len(writes):
        settled = {task.id for task in done}
        lost = next(write.task for write in writes if write.task.id not in settled)
        raise LeaseLost(lost.id, lost.attempt)
    return done


def record_all(outcomes: Sequence[tuple[Attempt, Write]], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Record the outcomes of a group; those whose attempt was no longer ours are left, with a word in the log.

    Rows that somebody else has locked do not hold up their neighbours, and an outcome that the database refuses does not take
    theirs with it: these are written one by one, afterwards. What is refused then as well is a failed attempt.

    Returns:
        The tasks with their outcomes.
    """
    done = _together(outcomes, now, using) if len(outcomes) > 1 else []
    settled = {task.id for task in done}
    for attempt, write in outcomes:
        if attempt.task.id not in settled:
            done += _alone(attempt, write, now, using)
    return done


def _together(outcomes: Sequence[tuple[Attempt, Write]], now: datetime, using: str) -> list[ScheduledTask]:
    """Record what nobody else has locked; nothing, if one of them is refused."""
    caught: list[Exception] = []
    with catching(caught):
        return settle([write for _attempt, write in outcomes], now=now, using=using, wait=False)
    logger.warning("The outcomes of %d tasks are written one by one: %s", len(outcomes), caught[0])
    drop_if_lost(caught[0], using)
    for attempt, _write in outcomes:
        attempt.restore()
    return []


def _alone(attempt: Attempt, write: Write, now: datetime, using: str) -> list[ScheduledTask]:
    """Record one outcome: once more if the database was at fault, and as a failed attempt if it is refused."""
    for last in (False, True):
        caught: list[Exception] = []
        try:
            with catching(caught):
                return [record(write, now=now, using=using)]
        except LeaseLost as lost:
            logger.warning("%s", lost)
            return []
        drop_if_lost(caught[0], using)
        attempt.restore()
        if last and is_passing(caught[0]):
            raise caught[0]
        write = write if is_passing(caught[0]) else failed(attempt, caught[0], now)
    logger.error("The outcome of task %s is not recorded; its lease will run out: %s", attempt.task.id, caught[0])
    return []
