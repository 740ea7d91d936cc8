"""Turn what a handler raised into an outcome, and sum it up in a fingerprint."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from itertools import islice
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final

from django.utils import timezone, translation

import timeline
from timeline import reasons
from timeline.conf import get_settings
from timeline.definition import Retry
from timeline.engine.attempts import PASSING, Attempt
from timeline.exceptions import Cancel, Discard, Rest, RetryAfter, UnreadableEntity
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.likeness import constant
from timeline.models import ScheduledTask
from timeline.models.facts import zone_of
from timeline.store.database_errors import catching, is_passing
from timeline.store.transition import Write

logger = logging.getLogger("timeline")

LENGTH: Final = 16  # Hex digits.
MAX_FRAMES: Final = 2_000
MAX_MEMBERS: Final = 50  # In a group of exceptions, groups inside it included.

_OURS: Final = f"{Path(timeline.__file__).parent}{os.sep}"
_LIBRARY: Final = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib")})
_INSTALLED: Final = re.compile(r"[\\/](?:site|dist)-packages[\\/]")

MAX_MESSAGE = 2_000
MAX_TRACEBACK = 8_000
# So many passing errors in a row do not count. Later ones count as failures, so that a lasting error is seen.
MAX_PASSING: Final = 10
# What is raised in a handler when a time is up that others have set: ``tasks/`` adds the one that Celery raises.
OUT_OF_TIME: Final[list[type[Exception]]] = []
# A resting task looks again after this time, whether somebody has decided, or whether the code fits.
LOOKS_AGAIN: Final = timedelta(hours=1)
# During a deploy, a process of the other code may take it any moment.
LOOKS_AGAIN_SOON: Final = timedelta(minutes=5)


def fingerprint(task_key: str, error: BaseException | None = None, *, code: str = "") -> str:
    """
    Sum up a failure in 16 hex digits: task, class of the error, the host's function, and the fixed parts of the message.
    Numbers, ids, quoted values and paths are left out. Without an exception, ``code`` is the reason code: the worker was lost.
    """
    parts = [task_key, code, *(_parts(error) if error is not None else ())]
    return hashlib.sha256("\x1f".join(parts).encode(errors="replace")).hexdigest()[:LENGTH]


def _parts(error: BaseException) -> list[str]:
    """The parts of an exception that are summed up; for a group, those of each different member, in any order."""
    members = {"\x1e".join(_own_parts(member)) for member in islice(_members(error), MAX_MEMBERS)}
    return [*_own_parts(error), *sorted(members)]


def _members(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        ahead = list(error.exceptions)
        while ahead:
            member = ahead.pop(0)
            yield member
            if isinstance(member, BaseExceptionGroup):
                ahead += member.exceptions


def _own_parts(error: BaseException) -> tuple[str, str, str]:
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(error, RecursionError):  # Where the stack ran out changes; where it began does not.
        return name, _place(error.__traceback__, outermost=True), ""
    return name, _place(error.__traceback__), constant(message_of(error))


def message_of(error: BaseException) -> str:
    """The text of ``str(error)``, also if that itself fails."""
    line = "".join(traceback.format_exception_only(error)).strip()
    return line.partition(": ")[2] or line


def _place(trace: TracebackType | None, *, outermost: bool = False) -> str:
    """The host's function that raised it or called what did; else the last function that is not ours; else none."""
    host, other = "", ""
    for frame in islice(_frames(trace), MAX_FRAMES):
        path = frame.f_code.co_filename
        if path.startswith(_OURS):
            continue
        named = f"{frame.f_globals.get('__name__', '')}:{frame.f_code.co_qualname}"
        if _INSTALLED.search(path) or path.startswith((*_LIBRARY, "<frozen")):
            other = named
        elif outermost:
            return named
        else:
            host = named
    return host or other


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def failed(attempt: Attempt, error: BaseException, now: datetime, *, together: bool = False) -> Write:
    """
    Turn what a handler raised into the outcome it asks for. If one call was for several (``together``), nobody knows whose
    fault it was: no budget counts, and each runs alone next.
    """
    with translation.override("en"):  # A row keeps the same text for all readers.
        return _outcome(attempt, error, now, together=together)


def _outcome(attempt: Attempt, error: BaseException, now: datetime, *, together: bool) -> Write:
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
    code = ReasonCode.TIMEOUT if isinstance(error, tuple(OUT_OF_TIME)) else ReasonCode.ERROR
    reason = Reason(code, message_of(error))
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
    """An attempt that waits for a decision or for other code: no failure. The task looks again from time to time."""
    write = Write(task=attempt.task, triggers=(Trigger.RETRY,), reason=reason, scheduled_at=attempt.now + again)
    further = attempt.steps is not None and attempt.steps.has_recorded
    return replace(write, failures=-attempt.task.failures) if further else write


def at_rest(attempt: Attempt, rest: Rest, *, again: timedelta = LOOKS_AGAIN) -> Write:
    """The outcome of an attempt that waits for somebody or something; ``again``: when it looks, if that is not said."""
    write = rested(attempt, rest.reason, again=again)
    return write if rest.due_at is None else replace(write, scheduled_at=rest.due_at, rests=rest.rests)


def _budget(attempt: Attempt, error: BaseException) -> tuple[Retry, int, int]:
    """The retry policy, its limit, and the number of failures so far: none, if a step has been done since the last."""
    task, steps, retry = attempt.task, attempt.steps, attempt.declared.options.retry
    if steps is None:
        return retry, task.max_attempts, task.failures
    before = 0 if steps.has_recorded else task.failures
    failed = steps.has_failed(error)
    if failed is not None and failed.options.retry is not None:
        return failed.options.retry, failed.options.retry.max_attempts or get_settings().MAX_ATTEMPTS, before
    return retry, task.max_attempts, before


def discarding(task: ScheduledTask, reason: Reason, error: BaseException, *, failures: int) -> Write:
    """The outcome of a task that is given up because of an error."""
    return Write(
        task=task,
        triggers=(Trigger.DISCARD,),
        reason=reason,
        error=_described(error),
        raised=error,
        fingerprint=fingerprint(task.task_key, error),
        failures=failures,
        evidence={"worker": task.worker} if task.worker else {},  # The row has that of the next attempt soon.
    )


def _described(error: BaseException) -> dict[str, str]:
    """Class, message and the end of the traceback, as text that a database can store. Values of variables are left out."""
    kind = type(error)
    lines = "".join(traceback.format_exception(error))
    described = {
        "class": f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        "message": message_of(error)[:MAX_MESSAGE],
        "traceback": lines if len(lines) <= MAX_TRACEBACK else f"…{lines[-MAX_TRACEBACK:]}",
    }
    return {name: text.replace("\x00", "").encode(errors="replace").decode() for name, text in described.items()}


def next_opening(attempt: Attempt, at: datetime) -> datetime:
    """When a task is tried again that would otherwise be tried at the given time."""
    hours = attempt.declared.options.window
    if hours is None or attempt.task.run_id is None:
        return at
    caught: list[Exception] = []
    with catching(caught):
        return hours.next_open(at, zone_for(attempt))
    logger.error("%s is tried again without its window, which cannot be read.", attempt.task, exc_info=caught[0])
    return at


def zone_for(attempt: Attempt) -> tzinfo:
    """The zone of a task's entity; the site's where it cannot be read."""
    with suppress(UnreadableEntity):
        return zone_of(attempt.definition, attempt.entity)
    return timezone.get_default_timezone()
