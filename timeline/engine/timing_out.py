"""Time out: an attempt whose handler has taken too long fails, whether or not it ever comes back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import connections

from timeline import reasons
from timeline.engine.answering import answered
from timeline.engine.attempting import Attempt
from timeline.engine.failing import MAX_TRACEBACK, failed
from timeline.engine.recording import record_all
from timeline.engine.watching import Keeper
from timeline.exceptions import LeaseLost, TimedOut
from timeline.models import ScheduledTask
from timeline.store.writing import Write

logger = logging.getLogger("timeline")


def fail_for_time(
    attempts: Sequence[Attempt], timeout: timedelta, stack: str, *, now: datetime, using: str, keeper: Keeper | None
) -> list[ScheduledTask]:
    """
    Record that the handler of these attempts has taken too long. If one call was for several, it counts in no budget.

    Args:
        attempts: The attempts that the handler was entered for.
        timeout: How long it may take.
        stack: Where it hangs.
        now: Story time.
        using: Database alias.
        keeper: Takes outcomes that cannot be written at once.

    Returns:
        The tasks whose outcomes are recorded.
    """
    together = len(attempts) > 1
    outcomes = [(attempt, _outcome(attempt, timeout, stack, now, together=together)) for attempt in attempts]
    return record_all(outcomes, now=now, using=using, keeper=keeper)


def _outcome(attempt: Attempt, timeout: timedelta, stack: str, now: datetime, *, together: bool) -> Write:
    timed_out = TimedOut(attempt.task.id, attempt.task.attempt, timeout)
    write = failed(attempt, timed_out, now, together=together)
    reason = reasons.TOO_LONG(timeout=timeout)
    error = {**(write.error or {}), "message": reason.text, "traceback": stack[-MAX_TRACEBACK:]}
    return answered(attempt, timed_out, replace(write, reason=reason, error=error), together=together)


def log_lost(error: LeaseLost) -> None:
    """
    Log that an attempt was no longer ours; without a warning if its time was up, because that failure has its own line
    already.
    """
    logger.log(logging.INFO if isinstance(error, TimedOut) else logging.WARNING, "%s", error)


def let_go_if_timed_out(error: LeaseLost) -> None:
    """
    Drop this thread's connections if a handler was interrupted on it: the next statement opens a new one.

    Args:
        error: The error that ended the attempt.
    """
    if not isinstance(error, TimedOut):
        return
    for connection in connections.all(initialized_only=True):
        connection.close()
        connection.connection = None  # Inside a transaction, close() would wait for its end.
        # Interrupted while it begins or ends a transaction, Django would believe for ever to be in it, and not reconnect.
        connection.in_atomic_block = connection.closed_in_transaction = connection.needs_rollback = False
        connection.atomic_blocks, connection.savepoint_ids = [], []
