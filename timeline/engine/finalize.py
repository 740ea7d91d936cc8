"""Outcomes: what came out of an attempt, and its write with all that follows: waits, moves, new rows, next tasks, alerts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.db import connections

from timeline import reasons
from timeline.dialects import dialect_of
from timeline.engine.attempts import Attempt
from timeline.engine.callbacks import Keeper
from timeline.engine.failures import MAX_TRACEBACK, failed
from timeline.engine.shared_transaction import waiting_for_no_lock_long
from timeline.exceptions import LeaseLost, TimedOut
from timeline.hooks import asked_for, hooks
from timeline.lifecycle import FINAL, State, Trigger
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.reconcile import reconcile_locked, seen_again
from timeline.registry import registry
from timeline.store.alerts import alert_discards
from timeline.store.database_errors import catching, drop_if_lost, may_be_written_later
from timeline.store.locks import Locked, lock_runs
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply

logger = logging.getLogger("timeline")


def record_together(writes: Sequence[Write], *, now: datetime, using: str) -> list[ScheduledTask]:
    """Record outcomes in the caller's transaction; ``LeaseLost`` if one was no longer ours: the caller must undo its work."""
    done = settle(writes, now=now, using=using)
    if len(done) < len(writes):
        settled = {task.id for task in done}
        lost = next(write.task for write in writes if write.task.id not in settled)
        raise LeaseLost(lost.id, lost.attempt)
    return done


def record_all(
    outcomes: Sequence[tuple[Attempt, Write]], *, now: datetime, using: str, keeper: Keeper | None = None
) -> list[ScheduledTask]:
    """
    Record the outcomes of a group; skip those whose attempt was no longer ours, with a line in the log.

    An outcome that is locked or refused does not hold up the others: it is written by itself afterwards. If refused again, its
    attempt has failed. If it cannot be written for another reason, it is kept: the handler's work must not be done again.
    Without a keeper, locks are waited for, and after one more try its error is raised.
    """
    done = _together(outcomes, now, using) if len(outcomes) > 1 or _tries_first(outcomes, keeper, using) else []
    if len(done) == len(outcomes):
        return done
    settled = {task.id for task in done}
    left = [Unwritten(*outcome, now, using) for outcome in outcomes if outcome[0].task.id not in settled]
    if keeper is None:
        for unwritten in left:
            if not unwritten.write_it(wait=True) and not unwritten.write_it(wait=True):
                raise unwritten.error
    else:
        _write_or_keep(left, keeper)
    return done + [unwritten.task for unwritten in left if unwritten.task is not None]


def _tries_first(outcomes: Sequence[tuple[Attempt, Write]], keeper: Keeper | None, using: str) -> bool:
    """Whether a single outcome is first tried without waiting: not if it needs a lock that can only be waited for."""
    ours = bool(outcomes) and bool(outcomes[0][0].definition.label)
    return keeper is not None and ours and not dialect_of(using).has_one_writer


def _together(outcomes: Sequence[tuple[Attempt, Write]], now: datetime, using: str) -> list[ScheduledTask]:
    """Record the outcomes whose rows nobody else has locked; nothing, if one of them is refused."""
    caught: list[Exception] = []
    with catching(caught):
        return settle([write for _attempt, write in outcomes], now=now, using=using, wait=False)
    logger.warning("Outcomes are written one by one, %d of them: %s", len(outcomes), caught[0])
    drop_if_lost(caught[0], using)
    for attempt, _write in outcomes:
        attempt.restore()
    return []


def _write_or_keep(left: Sequence[Unwritten], keeper: Keeper) -> None:
    """Write one by one; if one cannot be written, keep it and all after it, so that nobody waits for long."""
    for number, unwritten in enumerate(left):
        if not unwritten.write_it():
            for kept in left[number:]:
                logger.warning("The outcome of task %s is kept until it can be written: %s", kept.id, unwritten.error)
                keeper.keep(kept.attempt.task, partial(copy_context().run, kept.write_it))
            return


@dataclass(slots=True)
class Unwritten:
    """An outcome that has to be written by itself; ``refused``: the database refused it, and the attempt counts as failed."""

    attempt: Attempt
    write: Write
    now: datetime
    using: str
    task: ScheduledTask | None = None
    error: Exception = field(default_factory=Exception)
    refused: bool = False

    @property
    def id(self) -> UUID:
        """Id of the task."""
        return self.attempt.task.id

    def write_it(self, *, wait: bool = False) -> bool:
        """
        Write the outcome, or a failure if the database refuses it; without ``wait``, wait for locks only a moment. True:
        nothing is left to do: written, refused for good, or not ours any more. The log tells which.
        """
        caught: list[Exception] = []
        try:
            with catching(caught), nullcontext() if wait else waiting_for_no_lock_long(self.using):
                [recorded] = record_together([self.write], now=self.now, using=self.using)
            if not caught:
                self.task = recorded
                return True
        except LeaseLost as lost:
            logger.warning("%s", lost)
            return True
        self.error = caught[0]
        drop_if_lost(self.error, self.using)
        self.attempt.restore()
        if may_be_written_later(self.error):
            return False
        return self._write_as_failed(wait=wait)

    def _write_as_failed(self, *, wait: bool) -> bool:
        if self.refused:
            logger.error("The outcome of task %s is not recorded; its lease will run out: %s", self.id, self.error)
            return True
        self.write, self.refused = failed(self.attempt, self.error, self.now), True
        return self.write_it(wait=wait)


def outcome_of(attempt: Attempt, error: BaseException, now: datetime, *, together: bool = False) -> Write:
    """The outcome that an error asks for; ``together``: one call was for several tasks."""
    return _meant(attempt, error, failed(attempt, error, now, together=together), together=together)


def _meant(attempt: Attempt, error: BaseException, write: Write, *, together: bool) -> Write:
    for decide in asked_for(hooks().errors, [attempt]):
        write = decide(attempt, error, write, together=together)
    return write


def fail_for_time(
    attempts: Sequence[Attempt], timeout: timedelta, stack: str, *, now: datetime, using: str, keeper: Keeper | None
) -> list[ScheduledTask]:
    """Record that a handler has taken too long; ``stack`` says where. A call for several counts in no budget."""
    together = len(attempts) > 1
    outcomes = [(attempt, _outcome(attempt, timeout, stack, now, together=together)) for attempt in attempts]
    return record_all(outcomes, now=now, using=using, keeper=keeper)


def _outcome(attempt: Attempt, timeout: timedelta, stack: str, now: datetime, *, together: bool) -> Write:
    timed_out = TimedOut(attempt.task.id, attempt.task.attempt, timeout)
    write = failed(attempt, timed_out, now, together=together)
    reason = reasons.TOO_LONG(timeout=timeout)
    error = {**(write.error or {}), "message": reason.text, "traceback": stack[-MAX_TRACEBACK:]}
    return _meant(attempt, timed_out, replace(write, reason=reason, error=error), together=together)


def log_lost(error: LeaseLost) -> None:
    """Log that an attempt was no longer ours; no warning if its time was up: that failure has its own line already."""
    logger.log(logging.INFO if isinstance(error, TimedOut) else logging.WARNING, "%s", error)


def let_go_if_timed_out(error: LeaseLost) -> None:
    """Drop this thread's connections if a handler was interrupted on it: the next statement opens a new one."""
    if not isinstance(error, TimedOut):
        return
    for connection in connections.all(initialized_only=True):
        connection.close()
        connection.connection = None  # Inside a transaction, close() would wait for its end.
        # Interrupted while it begins or ends a transaction, Django would believe for ever to be in it, and not reconnect.
        connection.in_atomic_block = connection.closed_in_transaction = connection.needs_rollback = False
        connection.atomic_blocks, connection.savepoint_ids = [], []


def settle(writes: Sequence[Write], *, now: datetime, using: str, wait: bool = True) -> list[ScheduledTask]:
    """
    Write outcomes, then reconcile their runs: follow-ups get their rows, and a run without open tasks is finished.

    Entities and runs are locked before the tasks. A machine moves after the outcome is written, because that write shows
    whether the attempt is still ours. A waiting task goes to rest; if its event came meanwhile, it is due at once. Gives the
    tasks whose guard held, in the order given. Without ``wait``, locked tasks are left out. ``MoveNotAllowed``: all is undone.
    """
    for change in asked_for(hooks().releases, writes):
        writes = change(writes)
    ending = [write.task for write in writes if _locks(write)]
    if not ending and not any(map(_discards, writes)):
        return apply(writes, now=now, using=using, wait=wait)
    with atomic(using=using, savepoint=False):
        refs = [task.entity_ref for task in ending]
        locked = lock_runs((task.run_id for task in ending if task.run_id), refs, using=using, wait=wait)
        writes = writes if wait else _held(writes, locked)
        runs = {run.pk: run for run in locked.runs}
        are_plain = all(write.is_plain for write in writes)
        for decide in () if are_plain else hooks().decisions:
            writes = decide(writes, locked, now=now, using=using)
        done = apply(writes, now=now, using=using, wait=wait)
        moved = set() if are_plain else _follow(writes, done, runs, now=now, using=using)
        concerned = [runs[run_id] for run_id in sorted({*_decided(done, using), *moved}) if run_id in runs]
        acted = any(_has_effects(runs[run_id]) for run_id in moved if run_id in runs)
        entities = seen_again(concerned, using=using) if acted else locked.entities
        reconcile_locked(concerned, entities, now=now, using=using, lenient=True)
        if discarded := [task for task in done if task.state == State.DISCARDED]:
            alert_discards(discarded, now=now, using=using)
            for hear in hooks().discards:
                hear(discarded, now=now, using=using)
    return done


def _follow(
    writes: Sequence[Write],
    done: Sequence[ScheduledTask],
    runs: Mapping[UUID, TimelineRun],
    *,
    now: datetime,
    using: str,
) -> set[UUID]:
    """Write waits, moves of machines and fanned-out rows, for outcomes that were written. Give the ids of the moved runs."""
    settled = {task.id for task in done}
    made = [write for write in writes if write.task.id in settled]
    changed: set[UUID] = set()
    for follow in hooks().follows:
        changed |= follow(made, runs, now=now, using=using)
    return changed


def _has_effects(run: TimelineRun) -> bool:
    """Whether its moves have effects: they may have changed the entity, and the run, since these were read."""
    definition = registry.about(run.timeline, run.entity_label)
    return definition is not None and definition.has_effects


def _locks(write: Write) -> bool:
    """Whether its entity and its run are locked before it is written."""
    ends_task_of_run = write.task.run_id is not None and write.states[-1] in FINAL
    return ends_task_of_run or write.rests is not None or write.then is not None or bool(write.answers)


def _discards(write: Write) -> bool:
    """Whether its task is given up, so that people are told."""
    return write.triggers[-1:] == (Trigger.DISCARD,)


def _held(writes: Sequence[Write], locked: Locked) -> list[Write]:
    """The writes that need no locks, and those whose entities and runs are locked."""
    runs = {run.pk for run in locked.runs}
    return [
        write
        for write in writes
        if not _locks(write) or (write.task.run_id in runs | {None} and write.task.entity_ref in locked.entities)
    ]


def _decided(done: Sequence[ScheduledTask], using: str) -> list[UUID]:
    """
    Ids of runs in which a task may follow now, in order. Of a fanned-out task, only the last occurrence to end counts. No task
    follows one that is bound to a state of a machine: the machine moves, or stays in its state.
    """
    ended = [task for task in done if task.state in FINAL and not registry.is_in_state(task.task_key)]
    fanned_out = {(task.run_id, task.task_key) for task in ended if task.is_fanned_out}
    waited_for = {kind for ask in hooks().still_open for kind in ask(fanned_out, using=using)} if fanned_out else set()
    return sorted({task.run_id for task in ended if task.run_id and (task.run_id, task.task_key) not in waited_for})
