"""
Tell how attempts and tasks ended, after the commit: send the signals, and log failures.

Before the commit, tell how tasks ended and which states machines entered: receivers of these signals write in the same
transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from django.db import transaction
from django.dispatch import Signal

from timeline.lifecycle import FINAL, ReasonCode, Trigger
from timeline.models import ScheduledTask
from timeline.signals import Ending, Entered, attempts_failed, runs_entered, tasks_ended, tasks_ending
from timeline.store.changes import Write
from timeline.store.reporting import Failure, log_failures

_NO_FAILURE = frozenset({ReasonCode.RELEASED, ReasonCode.WAITING, ReasonCode.HOLD})
# What an ending has of its task. Code that reads tasks to end them reads these columns; otherwise each would cost a query.
TOLD_OF: Final = ("task_key", "entity_label", "entity_id", "run_id", "occurrence", "attempt", "state", "reason_code")
_OF_ATTEMPTS = frozenset({Trigger.RETRY, Trigger.DISCARD})


def is_heard() -> bool:
    """Whether anybody listens to endings of tasks. If not, nothing is read or made for them."""
    return bool(tasks_ended.has_listeners() or tasks_ending.has_listeners())


def tell_written(writes: Sequence[Write], *, using: str) -> None:
    """
    Tell of changes that were just made. ``tasks_ending`` is sent now; after the commit, the other signals are sent, each once
    for all tasks, and failed attempts are logged.

    Args:
        writes: Writes whose tasks are as the database has them now.
        using: Database alias.
    """
    failures = [Failure(_ending(write), write) for write in writes if _has_failed(write)]
    if failures:
        _after_commit(partial(log_failures, failures), using)
    if is_heard():
        _end([_ending(write) for write in writes if write.triggers and write.task.state in FINAL], using)
    if failures and attempts_failed.has_listeners():
        _send(attempts_failed, [failure.ending for failure in failures if not failure.is_last], using)


def tell_ended(tasks: Iterable[ScheduledTask], *, using: str) -> None:
    """
    Tell of tasks that were just ended: ``tasks_ending`` is sent now, ``tasks_ended`` after the commit. The tasks were read with
    all their columns.
    """
    if is_heard():
        _end([_ending_of(task) for task in tasks], using)


def is_entering_heard() -> bool:
    """Whether anybody listens to states that machines enter."""
    return bool(runs_entered.has_listeners())


def may_hosts_write() -> bool:
    """Whether receivers other than this package's hear of a move before its commit: they may write rows of tasks then."""
    # Receivers of this package are connected with a name (``dispatch_uid``), which is the first part of a signal's key for
    # them.
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


def _ending(write: Write) -> Ending:
    return _ending_of(write.task, write.raised)


def _ending_of(task: ScheduledTask, error: Exception | None = None) -> Ending:
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
    )
