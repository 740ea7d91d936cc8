"""
Tell how attempts and tasks ended, and what states were entered: some signals before the commit (receivers may write), some
after. And notify processes that wait for work.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, connections, transaction
from django.dispatch import Signal

from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.lifecycle import FINAL, ReasonCode, Trigger
from timeline.models import ScheduledTask
from timeline.signals import (
    CHANNEL,
    Ending,
    Entered,
    attempts_failed,
    attempts_failing,
    runs_entered,
    tasks_ended,
    tasks_ending,
    work_due,
    work_soon,
)
from timeline.store.changes import Write

logger = logging.getLogger("timeline.endings")

MAX_WHY: Final = 200

# With these reasons, an attempt has not failed: one of its steps waits for a decision of a person, or for code that fits.
_OF_REST: Final = frozenset({ReasonCode.IN_DOUBT, ReasonCode.DEFINITION})

_AGAIN: Final = "%s of %s failed at attempt %d and is tried again at %s: %s (task %s)"
_RESTS: Final = "%s of %s rests after attempt %d, and looks again at %s: %s (task %s)"
_LAST: Final = "%s of %s is discarded after attempt %d: %s (task %s)"
_ANSWER: Final = "%s of %s raised an error at attempt %d, and its machine takes that as %s: %s (task %s)"
_SEVERAL_AGAIN: Final = "%d tasks failed together and are tried again: %s (the first is task %s, %s)"
_SEVERAL_LAST: Final = "%d tasks are discarded together: %s (the first is task %s, %s)"
_SEVERAL_ANSWERS: Final = (
    "%d tasks raised an error together, which their machines take as an answer: %s (the first is task %s, %s)"
)

_NO_FAILURE = frozenset({ReasonCode.RELEASED, ReasonCode.WAITING, ReasonCode.HOLD})
# What an ending has of its task. Code that reads tasks to end them reads these columns; otherwise each would cost a query.
TOLD_OF: Final = ("task_key", "entity_label", "entity_id", "run_id", "occurrence", "attempt", "state", "reason_code")
_OF_ATTEMPTS = frozenset({Trigger.RETRY, Trigger.DISCARD})
_OUTCOMES: Final = _OF_ATTEMPTS | {Trigger.COMPLETE}


def is_answer(write: Write) -> bool:
    """Whether a task is completed, and its handler raised an error, since its machine takes that as an event."""
    return write.error is not None and write.reason is not None and write.reason.code == ReasonCode.THEN


class Failure:
    """An attempt that failed: made when the outcome is written, since the task may change before the commit."""

    def __init__(self, ending: Ending, write: Write) -> None:
        self.ending = ending
        self.due_at = write.task.scheduled_at
        self.event = write.then.event if is_answer(write) and write.then is not None else ""
        said = write.error["message"] if self.event and write.error else write.reason.text if write.reason else ""
        self.why = _in_a_line(ending.error, said)
        self.is_last = ending.state in FINAL

    @property
    def level(self) -> int:
        """The level for the log. It is only INFO if a handler asks to be called later."""
        if self.event:
            return logging.WARNING
        if self.is_last:
            return logging.ERROR
        return logging.INFO if self.ending.reason_code == ReasonCode.RETRY_AFTER else logging.WARNING

    @property
    def cause(self) -> tuple[int, object]:
        """Failures with the same cause are logged in one line: those of one call for many, or of a lost worker."""
        return self.level, self.why if self.ending.error is None else id(self.ending.error)


def log_failures(failures: Sequence[Failure]) -> None:
    """Write one line for each cause; with the traceback, if the task is not tried again."""
    together: dict[tuple[int, object], list[Failure]] = defaultdict(list)
    for failure in failures:
        together[failure.cause].append(failure)
    for (level, _cause), several in together.items():
        first, ending = several[0], several[0].ending
        raised = ending.error if first.is_last else None
        logger.log(
            level, *(_line(first) if len(several) == 1 else _line_of(several)), exc_info=raised, extra=_ids(several)
        )


def _line(failure: Failure) -> tuple[Any, ...]:
    ending = failure.ending
    which = f"#{ending.occurrence}" if ending.run_id and ending.occurrence else ""
    head = (f"{ending.task_key}{which}", _entity(ending) or "the system", ending.attempt)
    if failure.event:
        return _ANSWER, *head, failure.event, failure.why, ending.task_id
    if failure.is_last:
        return _LAST, *head, failure.why, ending.task_id
    said = _RESTS if ending.reason_code in _OF_REST else _AGAIN
    return said, *head, f"{failure.due_at:%Y-%m-%d %H:%M:%S %Z}", failure.why, ending.task_id


def _line_of(failures: Sequence[Failure]) -> tuple[Any, ...]:
    first = failures[0]
    said = _SEVERAL_ANSWERS if first.event else _SEVERAL_LAST if first.is_last else _SEVERAL_AGAIN
    return said, len(failures), first.why, first.ending.task_id, first.ending.task_key


def _ids(failures: Sequence[Failure]) -> dict[str, object]:
    """Values attached to the line: ids of the first failure, and of all if there are several."""
    ending = failures[0].ending
    bound: dict[str, object] = {
        "task_id": str(ending.task_id),
        "task_key": ending.task_key,
        "attempt": ending.attempt,
        "entity": _entity(ending),
        "run_id": str(ending.run_id or ""),
        "reason_code": ending.reason_code,
    }
    if len(failures) > 1:
        bound["task_ids"] = [str(failure.ending.task_id) for failure in failures]
    return bound


def _entity(ending: Ending) -> str:
    return f"{ending.entity_label} {ending.entity_id}".strip()


def _in_a_line(error: BaseException | None, reason: str) -> str:
    line = " ".join((f"{type(error).__name__}: {reason}" if error is not None else reason).split())
    return line if len(line) <= MAX_WHY else f"{line[: MAX_WHY - 1]}…"


def is_heard() -> bool:
    """Whether anybody listens to endings of tasks. If not, nothing is read or made for them."""
    return bool(tasks_ended.has_listeners() or tasks_ending.has_listeners())


def tell_written(writes: Sequence[Write], *, now: datetime, using: str) -> None:
    """Tell of changes: send ``attempts_failing`` and ``tasks_ending`` now; after the commit the others, and log failures."""
    told = [(write, _ending(write, now)) for write in writes if _has_failed(write) or is_answer(write)]
    failures = [Failure(ending, write) for write, ending in told]
    if failures:
        _after_commit(partial(log_failures, failures), using)
        if attempts_failing.has_listeners():
            failing = tuple(ending for write, ending in told if _has_failed(write))
            attempts_failing.send(sender=None, using=using, endings=failing)
    if is_heard():
        _end([_ending(write, now) for write in writes if write.triggers and write.task.state in FINAL], using)
    if failures and attempts_failed.has_listeners():
        _send(attempts_failed, [failure.ending for failure in failures if not failure.is_last], using)


def tell_ended(tasks: Iterable[ScheduledTask], *, using: str) -> None:
    """Tell of tasks just ended, read with all columns: ``tasks_ending`` is sent now, ``tasks_ended`` after the commit."""
    if is_heard():
        _end([_ending_of(task) for task in tasks], using)


def is_entering_heard() -> bool:
    """Whether anybody listens to states that machines enter."""
    return bool(runs_entered.has_listeners())


def may_hosts_write() -> bool:
    """Whether receivers other than this package's hear of a move before its commit: they may write rows of tasks then."""
    # Those of this package are connected with a name (``dispatch_uid``): the first part of their key in a signal.
    known = [receiver[0][0] for signal in (runs_entered, tasks_ending) for receiver in signal.receivers]
    return not all(str(name).startswith("timeline.") for name in known)


def tell_entered(entries: Sequence[Entered], *, using: str) -> None:
    """Tell receivers of runs that have just entered states, before the commit."""
    if entries:
        runs_entered.send(sender=None, using=using, entries=tuple(entries))


def _end(endings: Sequence[Ending], using: str) -> None:
    if endings and tasks_ending.has_listeners():
        tasks_ending.send(sender=None, using=using, endings=tuple(endings))
    if tasks_ended.has_listeners():
        _send(tasks_ended, endings, using)


def _has_failed(write: Write) -> bool:
    """Whether an attempt failed. It did not if it was given back without being entered, or if it waits or is on hold."""
    if not write.triggers or write.triggers[-1] not in _OF_ATTEMPTS:
        return False
    return write.reason is not None and write.reason.code not in _NO_FAILURE


def _send(signal: Signal, endings: Sequence[Ending], using: str) -> None:
    if endings:
        _after_commit(partial(signal.send_robust, sender=None, using=using, endings=tuple(endings)), using)


def _after_commit(tell: Callable[[], object], using: str) -> None:
    transaction.on_commit(tell, using=using, robust=True)


def _ending(write: Write, now: datetime) -> Ending:
    started_at = write.task.started_at if write.triggers and write.triggers[-1] in _OUTCOMES else None
    return _ending_of(write.task, write.raised, (now - started_at).total_seconds() if started_at else None)


def _ending_of(task: ScheduledTask, error: BaseException | None = None, seconds: float | None = None) -> Ending:
    return Ending(
        task_id=task.id,
        task_key=task.task_key,
        entity_label=task.entity_label,
        entity_id=task.entity_id,
        run_id=task.run_id,
        occurrence=task.occurrence,
        attempt=task.attempt,
        state=task.state,
        reason_code=task.reason_code,
        error=error,
        seconds=seconds,
    )


GAP: Final = 0.05  # Seconds between notifications of this process; a listener looks again after a little more.
_next: dict[str, float] = {}  # Alias → when this process notifies again.


def announce(*, using: str) -> None:
    """Send ``work_due`` after the current transaction has committed. If a receiver raises, this is logged and has no effect."""
    _after_commit(partial(_tell, work_due, using), using)


def announce_times(times: Iterable[datetime], *, now: datetime, using: str) -> None:
    """Announce rows with new due times, if the first is due now, or before the next poll."""
    first = min(times, default=None)
    if first is not None and first < now + get_settings().POLL_INTERVAL:
        _after_commit(partial(_tell, work_due if first <= now else work_soon, using), using)


def _tell(signal: Signal, using: str) -> None:
    _notify(using)
    signal.send_robust(sender=None, using=using)


def _notify(using: str) -> None:
    """
    Wake other processes, on PostgreSQL; not inside a transaction, as commits that notify wait for each other. It uses no
    cursor of Django's, so that code of the host's that counts or forbids queries after a commit does not see it.
    """
    if not dialect_of(using).can_notify or monotonic() < _next.get(using, 0.0):
        return
    connection = connections[using]
    try:
        if connection.in_atomic_block or not connection.get_autocommit():
            return
        _next[using] = monotonic() + GAP
        with connection.wrap_database_errors, connection.connection.cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")
    except (DatabaseError, InterfaceError) as error:
        logging.getLogger("timeline").debug("Nobody was notified; polls find it all the same. %s", error)
