"""What a handler raised, and the outcome it asks for."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Final

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError, connections
from django.utils import translation

from timeline.exceptions import Cancel, Discard, LeaseLost, RetryAfter
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models import ScheduledTask
from timeline.models.sqlstates import sqlstate_of
from timeline.operations._attempting import PASSING, Attempt
from timeline.operations._transition import Write

MAX_MESSAGE = 2_000
MAX_TRACEBACK = 8_000

# So many attempts in a row may end by an error that passes; further ones count as failures, so that what does not pass is seen.
MAX_PASSING: Final = 10

# SQLSTATEs of PostgreSQL (its manual, appendix A): could not serialize, deadlock, lock not available, connection
# exceptions, shutdown by an operator.
_PASSING = ("40001", "40P01", "55P03", "08", "57P")

# And those that refuse what was to be written: cardinality, data, constraints, checks, what triggers raise, limits.
_REFUSING = ("21", "22", "23", "27", "44", "54", "P0")


@contextmanager
def catching(caught: list[Exception]) -> Iterator[None]:
    """Keep whatever the host's code raises within the block: it is an outcome. That an attempt is not ours any more is none."""
    try:
        yield
    except LeaseLost:
        raise
    except Exception as error:  # noqa: BLE001
        caught.append(error)


def failed(attempt: Attempt, error: Exception, now: datetime, *, together: bool = False) -> Write:
    """
    Turn what a handler raised into the outcome it asks for.

    Args:
        attempt: That failed.
        error: What was raised.
        now: Story time: a retry waits from then.
        together: Whether one call was for several tasks: whose fault it was shows when each is run alone, so that it counts
            against nobody's budget.
    """
    with translation.override("en"):  # What a row keeps is the same for all readers.
        return _outcome(attempt, error, now, together=together)


def _outcome(attempt: Attempt, error: Exception, now: datetime, *, together: bool) -> Write:
    task = attempt.task
    if isinstance(error, Cancel):
        return Write(task=task, triggers=(Trigger.CANCEL,), reason=Reason(ReasonCode.HANDLER, error.reason))
    if isinstance(error, Discard):
        reason = Reason(ReasonCode.HANDLER, error.reason)
        return _discarding(task, reason, error, failures=1)
    passing = attempt.passing + 1 if is_passing(error) else 0
    spared = 0 < passing <= MAX_PASSING or (together and not isinstance(error, RetryAfter))
    failures = 0 if spared else 1
    delay = attempt.declared.options.retry.delay(max(task.failures + failures, passing, 1))
    reason = Reason(ReasonCode.ERROR, _message(error))
    if isinstance(error, RetryAfter):
        delay, reason = error.delay, Reason(ReasonCode.RETRY_AFTER, str(error))
    write = _discarding(task, reason, error, failures=failures)
    if passing:
        write.evidence[PASSING] = passing
    if failures and task.failures + failures >= task.max_attempts:
        return write
    return replace(write, triggers=(Trigger.RETRY,), scheduled_at=now + delay)


def _discarding(task: ScheduledTask, reason: Reason, error: Exception, *, failures: int) -> Write:
    return Write(
        task=task,
        triggers=(Trigger.DISCARD,),
        reason=reason,
        error=_described(error),
        raised=error,
        failures=failures,
    )


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


def drop_if_lost(error: Exception, using: str) -> None:
    """Let go of a connection that is gone, so that the outcome is written on a new one."""
    connection = connections[using]
    if is_passing(error) and not connection.in_atomic_block and not connection.is_usable():
        connection.close()


def is_passing(error: Exception) -> bool:
    """Whether the database, not the handler, is at fault and trying again helps: locked, deadlock, connection lost."""
    if not _is_of_database(error):
        return False
    sqlite, sqlstate = _codes(error)
    lost = isinstance(error, OperationalError | InterfaceError) and not sqlite and not sqlstate
    return lost or sqlite.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or sqlstate.startswith(_PASSING)


def may_be_written_later(error: Exception) -> bool:
    """
    Whether an outcome that could not be written may be so later: whatever the database raises but a refusal of the data.

    It is wider than ``is_passing``, since it is about our own statements: that the host has them canceled when they take
    long, or that the database is read-only for a while, says nothing against what a handler did.
    """
    if not _is_of_database(error) or isinstance(error, DataError | IntegrityError):
        return False
    return not _codes(error)[1].startswith(_REFUSING)


def _is_of_database(error: Exception) -> bool:
    return isinstance(error, DatabaseError | InterfaceError) and error.__cause__ is not None


def _codes(error: Exception) -> tuple[str, str]:
    """Name of SQLite's error and SQLSTATE; empty where there is none."""
    return str(getattr(error.__cause__, "sqlite_errorname", "")), sqlstate_of(error)
