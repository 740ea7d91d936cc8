"""Turn what a handler raised into an outcome."""

from __future__ import annotations

import traceback
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.utils import translation

from timeline import reasons
from timeline.conf import get_settings
from timeline.definition import Retry
from timeline.engine.attempting import PASSING, Attempt
from timeline.engine.fingerprinting import fingerprint, message_of
from timeline.engine.opening import next_opening
from timeline.exceptions import Cancel, Discard, RetryAfter
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models import ScheduledTask
from timeline.store.errors import is_passing
from timeline.store.writing import Write

MAX_MESSAGE = 2_000
MAX_TRACEBACK = 8_000

# So many passing errors in a row do not count. Later ones count as failures, so that a lasting error is seen.
MAX_PASSING: Final = 10


# A resting task looks again after this time, whether somebody has decided, or whether the code fits.
LOOKS_AGAIN: Final = timedelta(hours=1)
# During a deploy, a process of the other code may take it any moment.
LOOKS_AGAIN_SOON: Final = timedelta(minutes=5)


def failed(attempt: Attempt, error: Exception, now: datetime, *, together: bool = False) -> Write:
    """
    Turn what a handler raised into the outcome it asks for.

    Args:
        attempt: The attempt that failed.
        error: What was raised.
        now: Story time: a retry waits from then.
        together: Whether one call was for several tasks. Then nobody knows whose fault it was, and it counts in no budget:
            each task is run alone next.
    """
    with translation.override("en"):  # A row keeps the same text for all readers.
        return _outcome(attempt, error, now, together=together)


def _outcome(attempt: Attempt, error: Exception, now: datetime, *, together: bool) -> Write:
    task = attempt.task
    if isinstance(error, Cancel):
        return Write(task=task, triggers=(Trigger.CANCEL,), reason=Reason(ReasonCode.HANDLER, error.reason))
    if isinstance(error, Discard):
        reason = Reason(ReasonCode.HANDLER, error.reason)
        return discarding(task, reason, error, failures=1)
    if attempt.steps is not None and attempt.steps.in_doubt:
        rests = rested(attempt, reasons.STEP_IN_DOUBT(step=attempt.steps.in_doubt))
        return replace(rests, error=_described(error), raised=error)
    passing = attempt.passing + 1 if is_passing(error) else 0
    spared = 0 < passing <= MAX_PASSING or (together and not isinstance(error, RetryAfter))
    retry, most, before = _budget(attempt, error)
    failures = before if spared else before + 1
    delay = retry.delay(max(failures, passing, 1))
    reason = Reason(ReasonCode.ERROR, message_of(error))
    if isinstance(error, RetryAfter):
        delay, usual = error.delay, reasons.RETRY_ASKED_FOR(delay=error.delay)
        reason = usual if str(error) == usual.text else Reason(ReasonCode.RETRY_AFTER, str(error))
    write = discarding(task, reason, error, failures=failures - task.failures)
    if passing:
        write.evidence[PASSING] = passing
    if not spared and failures >= most:
        return write
    return replace(write, triggers=(Trigger.RETRY,), scheduled_at=next_opening(attempt, now + delay))


def rested(attempt: Attempt, reason: Reason, *, again: timedelta = LOOKS_AGAIN) -> Write:
    """
    An attempt that waits for somebody's decision, or for other code: no failure. The task looks again from time to time.
    """
    write = Write(task=attempt.task, triggers=(Trigger.RETRY,), reason=reason, scheduled_at=attempt.now + again)
    further = attempt.steps is not None and attempt.steps.has_recorded
    return replace(write, failures=-attempt.task.failures) if further else write


def _budget(attempt: Attempt, error: Exception) -> tuple[Retry, int, int]:
    """The retry policy, its limit, and the number of failures so far: none, if a step has been done since the last."""
    task, steps, retry = attempt.task, attempt.steps, attempt.declared.options.retry
    if steps is None:
        return retry, task.max_attempts, task.failures
    before = 0 if steps.has_recorded else task.failures
    failed = steps.has_failed(error)
    if failed is not None and failed.options.retry is not None:
        return failed.options.retry, failed.options.retry.max_attempts or get_settings().MAX_ATTEMPTS, before
    return retry, task.max_attempts, before


def discarding(task: ScheduledTask, reason: Reason, error: Exception, *, failures: int) -> Write:
    """The outcome of a task that is given up because of an error."""
    return Write(
        task=task,
        triggers=(Trigger.DISCARD,),
        reason=reason,
        error=_described(error),
        raised=error,
        fingerprint=fingerprint(task.task_key, error),
        failures=failures,
    )


def _described(error: Exception) -> dict[str, str]:
    """Class, message and the end of the traceback, as text that a database can store. Values of variables are left out."""
    kind = type(error)
    lines = "".join(traceback.format_exception(error))
    described = {
        "class": f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        "message": message_of(error)[:MAX_MESSAGE],
        "traceback": lines if len(lines) <= MAX_TRACEBACK else f"…{lines[-MAX_TRACEBACK:]}",
    }
    return {name: text.replace("\x00", "").encode(errors="replace").decode() for name, text in described.items()}
