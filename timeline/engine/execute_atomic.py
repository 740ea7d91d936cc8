"""Execute attempts in one transaction: ``atomic="shared"`` as a whole, and by default with a savepoint for each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, connections

from timeline.engine.attempts import Attempt
from timeline.engine.execute import (
    Executed,
    Outcome,
    Runtime,
    as_writes,
    call,
    call_in_time,
    deadly,
    execute_each,
    hooks_apart,
    is_time_up,
    record_outcomes,
    tell_undone,
    undone,
)
from timeline.engine.finalize import let_go_if_timed_out, record_together, settle
from timeline.engine.shared_transaction import shared_transaction
from timeline.exceptions import LeaseLost
from timeline.models import ScheduledTask
from timeline.store.database_errors import catching, is_of_a_lock
from timeline.store.transition import Write, noticing

NAME: Final = "timeline"
logger = logging.getLogger("timeline")
# How many handlers share a transaction. PostgreSQL keeps 64 subtransactions of a transaction in a fast cache
# (PGPROC_MAX_CACHED_SUBXIDS in its source); with more, every process that checks the visibility of its rows becomes slower.
MAX_TOGETHER: Final = 60


class Died(BaseException):
    """A handler has raised what ends its thread, and the transaction that it shared is undone."""

    def __init__(self, attempt: Attempt, error: BaseException) -> None:
        super().__init__(attempt, error)
        self.attempt = attempt
        self.error = error


def execute_shared(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Enter handlers of different entities in one transaction, for as long as a group may take, and record their outcomes in it.

    If one raises or was no longer ours, a lock cannot be had, or the database refuses, everything is undone. Then each attempt
    runs in a transaction of its own. An attempt that ends this thread has failed all the same.
    """
    return in_one_transaction(attempts, runtime, _execute_shared)


def in_one_transaction(
    attempts: Sequence[Attempt],
    runtime: Runtime,
    execute: Callable[[Sequence[Attempt], Runtime, list[Attempt]], Executed],
) -> Executed:
    """
    Execute attempts together; if that is undone, or there is only one, each gets a transaction of its own. ``execute`` adds
    each attempt that it enters to a list, and raises the error that undid it.
    """
    if len(attempts) == 1:
        return execute_each(attempts, runtime)
    if runtime.watch.stopping():
        return Executed([], attempts)
    caught: list[Exception] = []
    entered: list[Attempt] = []
    why: object = None
    try:
        with catching(caught):
            return execute(attempts, runtime, entered)
    except LeaseLost as error:
        logger.info("A shared transaction is undone: %s", error)
        let_go_if_timed_out(error)
        why = str(error)
    except Died as died:
        undone(attempts, died.error, runtime)
        ended = record_outcomes([(died.attempt, died.error)], runtime)
        return Executed(ended, [attempt for attempt in attempts if attempt is not died.attempt], deadly(died.error))
    for raised in caught:
        undone(attempts, raised, runtime)
        why = repr(raised)
    for attempt in entered:
        attempt.note_undone(f"the transaction that it shared is undone by {why}")
    for attempt in attempts:
        attempt.restore()
        attempt.alone = True
    return Executed([], attempts)


def _execute_shared(attempts: Sequence[Attempt], runtime: Runtime, entered: list[Attempt]) -> Executed:
    """Run as many as there is time for; either all of these count, or none, and the error is raised."""
    writes: list[Write] = []
    since = monotonic()
    with shared_transaction(runtime.using, watch=runtime.watch, entered=entered):
        place, begun = 0, monotonic()
        while place < len(attempts) and not (writes and (is_time_up(since) or runtime.watch.stopping())):
            attempt = attempts[place]
            place += 1
            if runtime.watch.take(attempt):
                entered.append(attempt)
                writes.append(_call(attempt, runtime, undone=entered[:-1]))
        runtime.watch.lend_transaction((), None)  # From here on no handler can hold up the transaction.
        tell_pace(entered, begun, runtime)
        ended = record_together(writes, now=runtime.clock(), using=runtime.using)
        return Executed(ended, attempts[place:])


def _call(attempt: Attempt, runtime: Runtime, *, undone: Sequence[Attempt]) -> Write:
    try:
        with hooks_apart([attempt.task.id], using=runtime.using):
            return call_in_time([attempt], partial(call, attempt), runtime, undone=undone)
    except Exception:
        raise
    except BaseException as error:
        if runtime.watch.is_killed():
            raise
        raise Died(attempt, error) from error


def tell_pace(entered: Sequence[Attempt], since: float, runtime: Runtime) -> None:
    """
    Tell how long handlers took since this ``monotonic()`` time, without begin and end of the transaction. These take as long
    for any number: if they counted, groups on a slow database would become small, and slower still.
    """
    seconds = monotonic() - since
    for attempt in entered:
        runtime.watch.took(attempt.task.task_key, 1, seconds / len(entered))


class Savepoint:
    """
    The part of a transaction since the last ``keep``. PostgreSQL only.

    Like ``atomic()`` within ``atomic()``, but one part ends and the next begins in one trip. And it raises where ``atomic()``
    would undo silently: the caller has to know that a broken part has lost its writes.
    """

    def __init__(self, using: str) -> None:
        self._connection: Any = connections[using]  # Any, since the type stubs know the hooks of an older Django.
        made, kept = (self._connection.ops.savepoint_create_sql(NAME), self._connection.ops.savepoint_commit_sql(NAME))
        prepares_all = getattr(self._connection.connection, "prepare_threshold", None) == 0
        self._next = [kept, made] if prepares_all else [f"{kept}; {made}"]  # Two statements cannot be prepared as one.
        self._execute(made)
        self._hooks = len(self._connection.run_on_commit)

    def keep(self) -> None:
        """Keep what was written; ``DatabaseError`` if an error was caught in the part, or a rollback was asked for."""
        self._connection.validate_no_broken_transaction()
        self._execute(*self._next)
        self._hooks = len(self._connection.run_on_commit)

    def undo(self) -> None:
        """Undo what was written, and hooks for its commit; then begin again. If that raises, undo the whole transaction."""
        self._connection.needs_rollback = False
        try:
            self._execute(self._connection.ops.savepoint_rollback_sql(NAME))
        except BaseException:
            self._connection.needs_rollback = True
            raise
        del self._connection.run_on_commit[self._hooks :]

    def _execute(self, *statements: str) -> None:
        with self._connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)


def execute_together(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Enter handlers of different entities in one transaction, for as long as a group may take. PostgreSQL only.

    If a handler raises, its writes are undone, and only its task fails. If it meets a lock that it cannot get in a moment, they
    are undone, and it runs in a transaction of its own, where it may wait. Everything is undone, and each attempt runs alone,
    if one was no longer ours, the database refuses, or a handler does not come back.
    """
    return in_one_transaction(attempts, runtime, _execute)


def _execute(attempts: Sequence[Attempt], runtime: Runtime, entered: list[Attempt]) -> Executed:
    """Run as many as there is time for; errors of a handler stay its own, unless it ends this thread."""
    together = _Together(runtime, entered)
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
    except Exception as error:
        if together.died is None:
            raise
        raise Died(*together.died) from error
    died = deadly(together.died[1]) if together.died is not None else None
    return Executed(ended, [*attempts[place:], *together.left], died)


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
        locks: Whether the running handler has met a lock that could not be had, even if it caught the error.
        outcomes: Of attempts that have ended, not recorded yet.
        called_off: Tasks that handlers of other tasks have changed, for example by an exit.
        left: Attempts that need another look.
        died: The attempt whose handler has ended this thread, with what it raised.
    """

    runtime: Runtime
    entered: list[Attempt]
    locks: _Locks = field(default_factory=_Locks)
    savepoint: Savepoint = field(init=False)
    outcomes: list[Outcome] = field(default_factory=list)
    called_off: set[UUID] = field(default_factory=set)
    left: list[Attempt] = field(default_factory=list)
    died: tuple[Attempt, BaseException] | None = None

    def is_over(self, following: Attempt) -> bool:
        """Whether no further handler may be entered in this transaction."""
        return self.died is not None or is_time_up(following.seen_at) or self.runtime.watch.stopping()

    def enter(self, attempt: Attempt) -> None:
        """Enter a handler, unless an earlier one of this transaction has cancelled its task; nobody else can see that yet."""
        if attempt.task.id in self.called_off:
            self.left.append(attempt)
        elif self.runtime.watch.take(attempt):
            self.entered.append(attempt)
            self.locks.missed = False
            try:
                self._enter(attempt)
            except Exception:
                raise
            except BaseException as died:
                if self.runtime.watch.is_killed():
                    raise
                self.died = attempt, died  # Raised when it is recorded, and what those before it did.
                self.savepoint.undo()
                attempt.restore()
                self.outcomes.append(self.died)

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
            attempt.note_undone("it met a lock that somebody has")
            self.left.append(attempt)
            self.runtime.watch.line_up([attempt])
        else:
            tell_undone([attempt], caught[0])
            self.outcomes.append((attempt, caught[0]))

    def _call(self, attempt: Attempt) -> Write:
        with hooks_apart([attempt.task.id], using=self.runtime.using):
            return call(attempt)

    def record(self) -> list[ScheduledTask]:
        """Record all outcomes; ``LeaseLost`` if an attempt that has written something was no longer ours."""
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
