"""Execute attempts in one transaction with a savepoint each: handlers declared with ``atomic=True``, the default."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, connections

from timeline.engine.attempting import Attempt
from timeline.engine.calling import call
from timeline.engine.executing import Executed, Outcome, Runtime, as_writes, is_time_up
from timeline.engine.executing_shared import in_one_transaction, tell_pace
from timeline.engine.hooking import hooks_apart
from timeline.engine.recording import shared_transaction
from timeline.engine.settling import settle
from timeline.exceptions import LeaseLost
from timeline.models import ScheduledTask
from timeline.store.errors import catching, is_of_a_lock
from timeline.store.noticing import noticing
from timeline.store.savepoints import Savepoint
from timeline.store.writing import Write

logger = logging.getLogger("timeline")

# How many handlers share a transaction. PostgreSQL keeps 64 subtransactions of a transaction in a fast cache
# (PGPROC_MAX_CACHED_SUBXIDS in its source); with more, every process that checks the visibility of its rows becomes slower.
MAX_TOGETHER: Final = 60


def execute_together(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Enter handlers one after the other in one transaction, for as long as a group may take, and record their outcomes in it.

    If a handler raises, its writes are undone, and only its task fails. If a handler meets a lock that it cannot get in a
    moment, its writes are undone, and it is left to run in a transaction of its own, where it may wait. If an attempt was no
    longer ours, if the database refuses the outcomes or the commit, or if the transaction is broken off because a handler
    does not come back, everything is undone, and each attempt is left to run alone. PostgreSQL only.

    Args:
        attempts: Of different entities, begun, and passed by the last look; at least one.
        runtime: Where they run.
    """
    return in_one_transaction(attempts, runtime, _execute)


def _execute(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Run as many as there is time for.

    Raises:
        LeaseLost: if one of them was no longer ours.
        Exception: whatever the database raises outside of handlers.
        BaseException: raised by a handler, and ends this thread; the handlers before it are done.
    """
    together = _Together(runtime)
    place = 0
    try:
        shared = shared_transaction(runtime.using, watch=runtime.watch, entered=together.entered)
        with shared as may_be_held_up, connections[runtime.using].execute_wrapper(together.locks):
            together.savepoint = Savepoint(runtime.using)
            begun = monotonic()
            most = 1 if may_be_held_up else min(len(attempts), MAX_TOGETHER)
            while place < most and not (place and together.is_over(attempts[place])):
                together.enter(attempts[place])
                place += 1
            runtime.watch.lend_transaction((), None)  # From here on no handler can hold up the transaction.
            tell_pace(together.entered, begun, runtime)
            ended = together.record()
    finally:
        if together.died is not None:
            raise together.died
    return Executed(ended, [*attempts[place:], *together.left])


@dataclass(slots=True)
class _Locks:
    """Wraps each statement, and remembers whether one has met a lock that could not be had."""

    missed: bool = False

    def __call__(self, execute: Callable[..., Any], sql: str, parameters: Any, many: bool, context: Any) -> Any:
        try:
            return execute(sql, parameters, many, context)
        except DatabaseError as error:
            self.missed = self.missed or is_of_a_lock(error)
            raise


@dataclass(slots=True)
class _Together:
    """
    How far a group has come.

    Args:
        runtime: Where it runs.
        locks: Whether the running handler has met a lock that could not be had, even if it caught the error.
        savepoint: The savepoint of the running handler.
        entered: Attempts whose handlers have been entered.
        outcomes: Outcomes of attempts that have ended, not recorded yet.
        called_off: Tasks that handlers of other tasks have changed, for example by an exit.
        left: Attempts that need another look.
        died: The error that ends this thread.
    """

    runtime: Runtime
    locks: _Locks = field(default_factory=_Locks)
    savepoint: Savepoint = field(init=False)
    entered: list[Attempt] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    called_off: set[UUID] = field(default_factory=set)
    left: list[Attempt] = field(default_factory=list)
    died: BaseException | None = None

    def is_over(self, following: Attempt) -> bool:
        """Whether no further handler may be entered in this transaction."""
        return self.died is not None or is_time_up(following.seen_at) or self.runtime.watch.stopping()

    def enter(self, attempt: Attempt) -> None:
        """
        Enter a handler, unless an earlier handler of this transaction has cancelled its task; nobody else can see that yet.
        """
        if attempt.task.id in self.called_off:
            self.left.append(attempt)
        elif self.runtime.watch.take(attempt):
            self.entered.append(attempt)
            self.locks.missed = False
            try:
                self._enter(attempt)
            except Exception:
                raise
            except BaseException as died:  # noqa: BLE001 (raised when what those before it did is recorded)
                self.died = died
                self.savepoint.undo()

    def _enter(self, attempt: Attempt) -> None:
        caught: list[Exception] = []
        with noticing() as changed, catching(caught):
            write = self._call(attempt)
            if not self.locks.missed:
                self.savepoint.keep()
        if not caught and not self.locks.missed:
            self.called_off |= changed
            self.outcomes.append((attempt, write))
            return
        self.savepoint.undo()
        attempt.restore()
        if self.locks.missed:
            attempt.alone = True
            self.left.append(attempt)
            self.runtime.watch.hold([attempt])
        else:
            self.outcomes.append((attempt, caught[0]))

    def _call(self, attempt: Attempt) -> Write:
        with hooks_apart([attempt.task.id], using=self.runtime.using):
            return call(attempt)

    def record(self) -> list[ScheduledTask]:
        """
        Record the outcomes of all.

        Raises:
            LeaseLost: if an attempt that has written something was no longer ours.
        """
        now = self.runtime.clock()
        writes = [write for _attempt, write in as_writes(self.outcomes, now)]
        done = settle(writes, now=now, using=self.runtime.using)
        settled = {task.id for task in done}
        for attempt, end in self.outcomes:
            if attempt.task.id not in settled:
                lost = LeaseLost(attempt.task.id, attempt.task.attempt)
                if not isinstance(end, Exception):
                    raise lost
                logger.warning("%s", lost)
        return done
