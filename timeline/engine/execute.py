"""Execute attempts one after the other, for as long as a group may take."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from django.db import connections

from timeline.engine.attempts import Attempt
from timeline.engine.callbacks import Watch
from timeline.engine.finalize import let_go_if_timed_out, log_lost, outcome_of, record, record_all
from timeline.engine.invoke import call
from timeline.exceptions import LeaseLost
from timeline.models import ScheduledTask
from timeline.models.task_records import REENTERED
from timeline.store.database_errors import catching, drop_if_lost
from timeline.store.isolation_level import atomic
from timeline.store.transition import Write

# How long a group may take before its outcomes are written: after a crash, this much is repeated.
BUDGET: Final = timedelta(milliseconds=50)

Outcome = tuple[Attempt, Write | BaseException]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Runtime:
    """Where a group runs: story time, database, and the watch that says whether to go on."""

    clock: Callable[[], datetime]
    using: str
    watch: Watch


class Executed(NamedTuple):
    """
    How much of a group is done.

    Args:
        rest: Attempts for which there was no time; they need a fresh last look.
        died: What a handler raised that ends this thread, such as ``SystemExit``; its attempt has failed.
    """

    ended: list[ScheduledTask]
    rest: Sequence[Attempt]
    died: BaseException | None = None


def execute_each(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Enter handlers, which have passed the last look, one after the other, and record how they ended.

    An atomic handler shares one transaction with its outcome and its follow-ups. If the attempt is no longer ours, the write of
    the outcome fails, and the transaction is undone. Other handlers run in no transaction; their outcomes are written together.
    """
    ended: list[ScheduledTask] = []
    outcomes: deque[Outcome] = deque()
    runtime.watch.lend(partial(_record_early, outcomes, ended, runtime))
    place, died = 0, None
    try:
        while place < len(attempts) and died is None and not runtime.watch.stopping():
            waited = runtime.watch.keep_up()
            if (place or waited) and is_time_up(attempts[place].seen_at):
                break
            attempt = attempts[place]
            place += 1
            if not runtime.watch.take(attempt):
                continue
            outcome = _execute(attempt, runtime)
            if isinstance(outcome, ScheduledTask):
                ended.append(outcome)
            elif outcome is not None:
                outcomes.append((attempt, outcome))
                died = deadly(outcome)
    finally:  # Also if the process is being ended: earlier handlers have ended, and must not be entered again.
        runtime.watch.lend(None)
        if outcomes:
            tasks = [attempt.task for attempt, _end in outcomes]
            ended += runtime.watch.settle(tasks, partial(record_outcomes, list(outcomes), runtime))
    return Executed(ended, attempts[place:], died)


def deadly(outcome: Write | BaseException) -> BaseException | None:
    """What a handler raised, if it ends the thread: no ``Exception``, and not a cancelled coroutine, which ends only itself."""
    if isinstance(outcome, Write | Exception | asyncio.CancelledError):
        return None
    return outcome


def call_in_time(
    attempts: Sequence[Attempt], act: Callable[[], Answer], runtime: Runtime, *, undone: Sequence[Attempt] = ()
) -> Answer:
    """Call a handler, with its time limit if it has one; ``TimedOut`` if that is over: then its attempts have failed."""
    if attempts[0].declared.options.timeout is None:
        return act()
    return runtime.watch.call(attempts, act, undone=undone)


def _record_early(outcomes: deque[Outcome], ended: list[ScheduledTask], runtime: Runtime) -> None:
    """Let another thread record the finished outcomes, while a handler holds up this thread."""
    taken = [outcomes.popleft() for _ in range(len(outcomes))]
    try:
        ended += record_outcomes(taken, runtime)
    except BaseException:
        outcomes.extendleft(reversed(taken))
        raise


def is_time_up(since: float) -> bool:
    """Whether a group that began at this ``monotonic()`` time needs a fresh look before it enters another handler."""
    return monotonic() - since >= BUDGET.total_seconds()


def _execute(attempt: Attempt, runtime: Runtime) -> ScheduledTask | Write | BaseException | None:
    """Enter one handler. Give the task if its outcome is recorded, else the outcome; None if the attempt was no longer ours."""
    caught: list[Exception] = []
    enter = partial(_enter, attempt, runtime)
    try:
        with catching(caught):
            if attempt.declared.options.atomic:
                with atomic(using=runtime.using, durable=True):
                    with hooks_apart([attempt.task.id], using=runtime.using):
                        write = enter()
                    return record(write, now=runtime.clock(), using=runtime.using)
            return enter()
    except LeaseLost as error:
        log_lost(error)
        let_go_if_timed_out(error)
        return None
    except BaseException as died:
        if runtime.watch.is_killed():
            raise
        return undone([attempt], died, runtime)
    return undone([attempt], caught[0], runtime)


def undone(attempts: Sequence[Attempt], error: BaseException, runtime: Runtime) -> BaseException:
    """Let go of a lost connection after an error has undone a call, and set its tasks back; give the error."""
    drop_if_lost(error, runtime.using)
    for attempt in attempts:
        attempt.restore()
    return error


def _enter(attempt: Attempt, runtime: Runtime) -> Write:
    """Call the handler, and tell how long it took."""
    started = monotonic()
    try:
        write = call_in_time([attempt], partial(call, attempt), runtime)
        if attempt.undone:
            write.evidence[REENTERED] = attempt.undone
        return write
    finally:
        runtime.watch.took(attempt.task.task_key, 1, monotonic() - started)


def record_outcomes(outcomes: Sequence[Outcome], runtime: Runtime) -> list[ScheduledTask]:
    """Record those outcomes that are not recorded yet."""
    if not outcomes:
        return []
    now = runtime.clock()
    return record_all(as_writes(outcomes, now), now=now, using=runtime.using, keeper=runtime.watch.keeper())


def as_writes(outcomes: Sequence[Outcome], now: datetime) -> list[tuple[Attempt, Write]]:
    """Turn the errors that were raised into the outcomes they ask for."""
    return [(attempt, end if isinstance(end, Write) else outcome_of(attempt, end, now)) for attempt, end in outcomes]


logger = logging.getLogger("timeline")


def hooks_apart(task_ids: Sequence[UUID], *, using: str) -> AbstractContextManager[None]:
    """
    Log errors of hooks that are registered within the block, and call the other hooks all the same. The outcome is committed
    by then: an error would look like a commit that failed, and stop the hooks of other tasks.
    """
    return _HooksApart(task_ids, connections[using])


class _HooksApart:
    """A class, since a generator takes three times as long, and this is entered for each step."""

    __slots__ = ("_before", "_connection", "_task_ids")

    def __init__(self, task_ids: Sequence[UUID], connection: Any) -> None:
        self._task_ids = task_ids
        self._connection = connection

    def __enter__(self) -> None:
        """Note which hooks are there already."""
        self._before = len(self._connection.run_on_commit)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Wrap those that came since. After an error they are gone with the transaction."""
        hooks = self._connection.run_on_commit
        if error is None and len(hooks) > self._before:
            hooks[self._before :] = [
                (savepoints, _harmless(hook, self._task_ids), robust)
                for savepoints, hook, robust in hooks[self._before :]
            ]


def _harmless(hook: Callable[[], object], task_ids: Sequence[UUID]) -> Callable[[], None]:
    def call() -> None:
        try:
            hook()
        except BaseException as error:
            ids = [str(task_id) for task_id in task_ids]
            bound = {"task_id": ids[0], **({"task_ids": ids} if len(ids) > 1 else {})}
            logger.exception(_FAILED, hook, ", ".join(ids), error, extra=bound)
            if not isinstance(error, Exception):
                raise

    return call


_FAILED = "%r, called on commit of task %s, which has completed, raised: %s"
