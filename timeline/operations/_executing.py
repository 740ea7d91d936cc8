"""Execute one attempt: guards, handler, outcome. The one place that meets whatever a host's handler raises."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from django.db import DatabaseError, InterfaceError, OperationalError, connections, transaction
from django.utils import timezone, translation

from timeline.exceptions import Cancel, Discard, LeaseLost, RetryAfter
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models import ScheduledTask
from timeline.models.facts import language_of, zone_of
from timeline.operations._attempting import Attempt
from timeline.operations._current import while_running
from timeline.operations._settling import settle
from timeline.operations._transition import Write
from timeline.payloads import check_json

logger = logging.getLogger("timeline")

MAX_MESSAGE = 2_000
MAX_TRACEBACK = 8_000

# SQLSTATEs of PostgreSQL (its manual, appendix A): could not serialize, deadlock, lock not available, connection
# exceptions, shutdown by an operator.
_PASSING = ("40001", "40P01", "55P03", "08", "57P")

Clock = Callable[[], datetime]

_IN_SHADOW = Reason(ReasonCode.SHADOW, "would have run")


def execute(attempt: Attempt, *, clock: Clock, using: str) -> ScheduledTask | None:
    """
    Enter the handler and record how it ended.

    An atomic handler shares one transaction with its outcome and what follows from it; the outcome's guarded write is the
    fence. Another handler runs in no transaction, and its outcome is written afterwards.

    Args:
        attempt: Begun, and passed by the last look.
        clock: Tells story time.
        using: Database alias.

    Returns:
        The task with its outcome; None if the attempt was no longer ours (cancelled meanwhile, or given up for lost).
    """
    try:
        if attempt.declared.options.atomic:
            with transaction.atomic(using=using, durable=True):
                return _record(_call(attempt, using), clock, using)
        write = _call(attempt, using)
    except LeaseLost as error:
        logger.warning("%s", error)
        return None
    except Exception as error:  # noqa: BLE001 (whatever the host's code raises is this attempt's outcome)
        _drop_if_lost(error, using)
        with translation.override("en"):  # What a row keeps is the same for all readers.
            write = _failed(attempt, error, clock())
    return conclude(write, clock=clock, using=using)


def conclude(write: Write, *, clock: Clock, using: str) -> ScheduledTask | None:
    """Record an outcome in a transaction of its own; None if the attempt was no longer ours."""
    try:
        return _record(write, clock, using)
    except LeaseLost as error:
        logger.warning("%s", error)
        return None


def _record(write: Write, clock: Clock, using: str) -> ScheduledTask:
    done = settle([write], now=clock(), using=using)
    if not done:
        raise LeaseLost(write.task.pk, write.task.attempt)
    return done[0]


def _call(attempt: Attempt, using: str) -> Write:
    """Ask the guards, enter the handler unless the timeline is in shadow, and take its result."""
    task, options = attempt.task, attempt.declared.options
    with while_running(task.pk), _in_place_of(attempt):
        for option, wanted in (("only_if", True), ("unless", False)):
            guard = getattr(options, option)
            if callable(guard) and bool(guard(attempt.entity)) is not wanted:
                return Write(task=task, triggers=(Trigger.CANCEL,), reason=_guard_reason(option, guard))
        if attempt.definition.shadow:
            return Write(task=task, triggers=(Trigger.COMPLETE,), reason=_IN_SHADOW)
        method = getattr(attempt.timeline(using), attempt.declared.name)
        result = method(attempt.entity) if attempt.definition.label else method()
    check_json("result", result)
    return Write(
        task=task,
        triggers=(Trigger.COMPLETE,),
        reason=Reason(ReasonCode.DONE),
        result=None if result is None else json.dumps(result, ensure_ascii=False),
    )


def _guard_reason(option: str, guard: object) -> Reason:
    return Reason(ReasonCode.GUARD, f"{option} {getattr(guard, '__name__', type(guard).__name__)}")


@contextmanager
def _in_place_of(attempt: Attempt) -> Iterator[None]:
    """Let zone and language be the entity's, where its timeline says so."""
    language = language_of(attempt.definition, attempt.entity) or translation.get_language()
    with timezone.override(zone_of(attempt.definition, attempt.entity)), translation.override(language):
        yield


def _failed(attempt: Attempt, error: Exception, now: datetime) -> Write:
    """Turn what a handler raised into the outcome it asks for."""
    task = attempt.task
    if isinstance(error, Cancel):
        return Write(task=task, triggers=(Trigger.CANCEL,), reason=Reason(ReasonCode.HANDLER, error.reason))
    if isinstance(error, Discard):
        reason = Reason(ReasonCode.HANDLER, error.reason)
        return Write(task=task, triggers=(Trigger.DISCARD,), reason=reason, error=_described(error), failures=1)
    failures = 0 if _is_passing(error) else 1
    delay = attempt.declared.options.retry.delay(max(task.failures + failures, 1))
    reason = Reason(ReasonCode.ERROR, _message(error))
    if isinstance(error, RetryAfter):
        delay, reason = error.delay, Reason(ReasonCode.RETRY_AFTER, str(error))
    write = Write(task=task, triggers=(Trigger.DISCARD,), reason=reason, error=_described(error), failures=failures)
    if failures and task.failures + failures >= task.max_attempts:
        return write
    return replace(write, triggers=(Trigger.RETRY,), scheduled_at=now + delay)


def _described(error: Exception) -> dict[str, str]:
    """Class, message and the end of the traceback, as text that a database stores. No values of variables."""
    kind = type(error)
    lines = "".join(traceback.format_exception(error))
    described = {
        "class": f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        "message": _message(error)[:MAX_MESSAGE],
        "traceback": lines if len(lines) <= MAX_TRACEBACK else f"…{lines[-MAX_TRACEBACK:]}",
    }
    return {name: text.replace("\x00", "").encode(errors="replace").decode() for name, text in described.items()}


def _message(error: Exception) -> str:
    """What ``str(error)`` says, also where that itself fails."""
    line = "".join(traceback.format_exception_only(error)).strip()
    return line.partition(": ")[2] or line


def _drop_if_lost(error: Exception, using: str) -> None:
    """Let go of a connection that is gone, so that the outcome is written on a new one."""
    connection = connections[using]
    if _is_passing(error) and not connection.in_atomic_block and not connection.is_usable():
        connection.close()


def _is_passing(error: Exception) -> bool:
    """Whether the database, not the handler, is at fault and trying again helps: locked, deadlock, connection lost."""
    cause = error.__cause__
    if not isinstance(error, DatabaseError | InterfaceError) or cause is None:
        return False
    sqlite = str(getattr(cause, "sqlite_errorname", ""))
    sqlstate = str(getattr(cause, "sqlstate", "") or "")
    lost = isinstance(error, OperationalError | InterfaceError) and not sqlite and not sqlstate
    return lost or sqlite.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or sqlstate.startswith(_PASSING)
