"""Record outcomes: those of a group in one transaction; those for which this fails, one by one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.db import connections

from timeline.dialects import dialect_of
from timeline.engine.attempting import Attempt
from timeline.engine.failing import failed
from timeline.engine.settling import settle
from timeline.engine.watching import Keeper, Watch
from timeline.exceptions import LeaseLost
from timeline.models import ScheduledTask
from timeline.store.breaking_off import Transaction, break_off
from timeline.store.errors import catching, drop_if_lost, may_be_written_later
from timeline.store.isolating import atomic
from timeline.store.writing import Write

logger = logging.getLogger("timeline")

# How long a transaction of ours waits for a lock that it can do without: far less than the second after which PostgreSQL looks
# for deadlocks, so that no other transaction is ended for it.
PATIENCE: Final = timedelta(milliseconds=50)


def record(write: Write, *, now: datetime, using: str) -> ScheduledTask:
    """
    Record one outcome, in the caller's transaction or in one of its own.

    Raises:
        LeaseLost: if the attempt was no longer ours: cancelled meanwhile, or given up for lost.
    """
    return record_together([write], now=now, using=using)[0]


def record_together(writes: Sequence[Write], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Record outcomes in the transaction that the caller shares among them: all of them, or the caller must undo its work.

    Raises:
        LeaseLost: if one of the attempts was no longer ours.
    """
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

    A row that somebody else has locked does not hold up the others, and an outcome that the database refuses does not undo
    the others: these are written one by one, afterwards. If the database refuses one again, its attempt has failed. An
    outcome that cannot be written for another reason is kept, because the handler's work is done and must not be done again.

    Args:
        outcomes: Each attempt with its outcome.
        now: Story time at which they ended.
        using: Database alias.
        keeper: Takes outcomes that cannot be written at once; None: wait for locks, and try again at once, but only once.

    Returns:
        The tasks with their outcomes, as far as they are recorded.

    Raises:
        DatabaseError, InterfaceError: if an outcome could not be written, and there is no keeper.
    """
    done = _together(outcomes, now, using) if len(outcomes) > 1 or _need_not_wait(outcomes, keeper, using) else []
    settled = {task.id for task in done}
    left = [Unwritten(*outcome, now, using) for outcome in outcomes if outcome[0].task.id not in settled]
    if keeper is None:
        for unwritten in left:
            if not unwritten.write_it(wait=True) and not unwritten.write_it(wait=True):
                raise unwritten.error
    else:
        _write_or_keep(left, keeper)
    return done + [unwritten.task for unwritten in left if unwritten.task is not None]


def _need_not_wait(outcomes: Sequence[tuple[Attempt, Write]], keeper: Keeper | None, using: str) -> bool:
    """Whether a single outcome is first tried without waiting: not if it needs a lock that can only be waited for."""
    ours = bool(outcomes) and bool(outcomes[0][0].definition.label)
    return keeper is not None and ours and not dialect_of(using).has_one_writer


def _together(outcomes: Sequence[tuple[Attempt, Write]], now: datetime, using: str) -> list[ScheduledTask]:
    """Record the outcomes whose rows nobody else has locked; nothing, if one of them is refused."""
    caught: list[Exception] = []
    with catching(caught):
        return settle([write for _attempt, write in outcomes], now=now, using=using, wait=False)
    logger.warning("The outcomes of %d tasks are written one by one: %s", len(outcomes), caught[0])
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
    """
    An outcome that has to be written by itself.

    Args:
        attempt: The attempt that ended.
        write: Its outcome.
        now: Story time at which it ended.
        using: Database alias.
        task: The task as it was recorded; None: not recorded, or not yet.
        error: Why the last try to write it failed.
        refused: Whether the database refused the outcome: then the attempt counts as failed.
    """

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
        Write the outcome, or a failure if the database refuses the outcome.

        Args:
            wait: Whether to wait for locks as long as it takes; otherwise only for a moment.

        Returns:
            Whether nothing is left to do: written, refused for good, or not ours any more. The log tells which.
        """
        caught: list[Exception] = []
        try:
            with catching(caught), nullcontext() if wait else _waiting_for_no_lock_long(self.using):
                recorded = record(self.write, now=self.now, using=self.using)
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


@contextmanager
def _waiting_for_no_lock_long(using: str) -> Iterator[None]:
    with atomic(using=using):
        wait_for_no_lock_long(using)
        yield


@contextmanager
def shared_transaction(using: str, *, watch: Watch, entered: Sequence[Attempt]) -> Iterator[bool]:
    """
    A transaction of several handlers; if it can be broken off, no handler in it waits long for a lock that somebody has.

    Args:
        using: Database alias.
        watch: May have the transaction broken off, if a handler does not come back.
        entered: Attempts whose handlers have been entered so far; it grows.

    Yields:
        Whether a handler that does not come back may hold up the others, because the server lets nobody break the
        transaction off.
    """
    is_within = connections[using].in_atomic_block
    with atomic(using=using, durable=True):
        transaction = None if is_within else wait_for_no_lock_long(using)
        if transaction is not None:
            watch.lend_transaction(entered, partial(break_off, transaction, using=using))
        try:
            yield transaction is None and not is_within and not dialect_of(using).has_one_writer
        finally:
            watch.lend_transaction((), None)


def wait_for_no_lock_long(using: str) -> Transaction | None:
    """
    Let the rest of the transaction wait for a lock no longer than ``PATIENCE``, and no longer than the host's own setting.

    Returns:
        The transaction; None if nobody may break it off, or if the database has no such locks.
    """
    dialect = dialect_of(using)
    if dialect.has_one_writer:
        return None
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("lock_timeout"), {"most": f"{PATIENCE.total_seconds()} seconds"})
        pid, since, may_be_broken_off, _timeout = cursor.fetchone()
    return Transaction(pid, since) if may_be_broken_off else None
