"""
Tell how attempts and tasks ended, once it is committed: who listens is told, and what failed is logged.

And before the commit, tell how tasks ended and where machines came to: whoever listens there writes in the same transaction.
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
# What an ending says of its task. Who reads tasks in part to end them reads these: else each costs a query for each of them.
TOLD_OF: Final = ("task_key", "entity_label", "entity_id", "run_id", "occurrence", "attempt", "state", "reason_code")
_OF_ATTEMPTS = frozenset({Trigger.RETRY, Trigger.DISCARD})


def is_heard() -> bool:
    """Whether anybody listens to how tasks end; else nothing is read or made for them."""
    return bool(tasks_ended.has_listeners() or tasks_ending.has_listeners())


def tell_written(writes: Sequence[Write], *, using: str) -> None:
    """
    Tell of changes that have just been made, after the commit: those who listen in one call, the log where one failed.

    Args:
        writes: Their tasks are as the database has them now.
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
    """Tell those who listen of tasks that have just been ended, after the commit. The tasks were read whole."""
    if is_heard():
        _end([_ending_of(task) for task in tasks], using)


def is_entering_heard() -> bool:
    """Whether anybody listens to where machines come to."""
    return bool(runs_entered.has_listeners())


def may_hosts_write() -> bool:
    """Whether others than this package are told what a move does, before its commit: they may write rows of tasks then."""
    # What is ours is connected under a name (``dispatch_uid``), which is the first of what a signal knows a receiver by.
    known = [receiver[0][0] for signal in (runs_entered, tasks_ending) for receiver in signal.receivers]
    return not all(str(name).startswith("timeline.") for name in known)


def tell_entered(entries: Sequence[Entered], *, using: str) -> None:
    """Tell those who listen of runs that have just come into states, before the commit."""
    if entries:
        runs_entered.send(sender=None, using=using, entries=tuple(entries))


def _end(endings: Sequence[Ending], using: str) -> None:
    if endings and tasks_ending.has_listeners():
        tasks_ending.send(sender=None, using=using, endings=tuple(endings))
    if tasks_ended.has_listeners():
        _send(tasks_ended, endings, using)


def _has_failed(write: Write) -> bool:
    """Whether an attempt ended badly; one that was given back without an entry did not, nor one that waits or is on hold."""
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
