"""Execute attempts one after the other, for as long as a group may take."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import Final, NamedTuple, TypeVar

from timeline.engine.answering import answered
from timeline.engine.attempting import Attempt
from timeline.engine.calling import call
from timeline.engine.failing import failed
from timeline.engine.hooking import hooks_apart
from timeline.engine.recording import record, record_all
from timeline.engine.timing_out import let_go_if_timed_out, log_lost
from timeline.engine.watching import Watch
from timeline.exceptions import LeaseLost
from timeline.models import ScheduledTask
from timeline.store.errors import catching, drop_if_lost
from timeline.store.isolating import atomic
from timeline.store.writing import Write

# How long a group may take before its outcomes are written: after a crash, this much is repeated.
BUDGET: Final = timedelta(milliseconds=50)

Outcome = tuple[Attempt, Write | Exception]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Runtime:
    """
    Where a group runs.

    Args:
        clock: Gives story time.
        using: Database alias.
        watch: Says before each handler whether to go on, and is told how long it took.
    """

    clock: Callable[[], datetime]
    using: str
    watch: Watch


class Executed(NamedTuple):
    """
    How much of a group is done.

    Args:
        ended: Tasks with their outcomes.
        rest: Attempts for which there was no time; they need a fresh last look.
    """

    ended: list[ScheduledTask]
    rest: Sequence[Attempt]


def execute_each(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Enter handlers one after the other, and record how they ended.

    An atomic handler shares one transaction with its outcome and its follow-ups. If the attempt is no longer ours, the write of
    the outcome fails, and the transaction is undone. Other handlers run in no transaction; their outcomes are written together.

    Args:
        attempts: Attempts that were begun and have passed the last look; at least one.
        runtime: Where they run.
    """
    ended: list[ScheduledTask] = []
    outcomes: deque[Outcome] = deque()
    runtime.watch.lend(partial(_record_early, outcomes, ended, runtime))
    place = 0
    try:
        while place < len(attempts) and not runtime.watch.stopping():
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
    finally:  # Also if a handler ends this thread: earlier handlers have ended, and must not be entered again.
        runtime.watch.lend(None)
        if outcomes:
            tasks = [attempt.task for attempt, _end in outcomes]
            ended += runtime.watch.settle(tasks, partial(record_outcomes, list(outcomes), runtime))
    return Executed(ended, attempts[place:])


def call_in_time(
    attempts: Sequence[Attempt], act: Callable[[], Answer], runtime: Runtime, *, undone: Sequence[Attempt] = ()
) -> Answer:
    """
    Call a handler, with its time limit if it has one.

    Args:
        attempts: The attempts that the call is for.
        act: The call.
        runtime: Where it runs.
        undone: Attempts that share its transaction, which is undone if its time is up.

    Raises:
        TimedOut: if its time was up: then its attempts have failed.
    """
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


def _execute(attempt: Attempt, runtime: Runtime) -> ScheduledTask | Write | Exception | None:
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
    drop_if_lost(caught[0], runtime.using)
    attempt.restore()
    return caught[0]


def _enter(attempt: Attempt, runtime: Runtime) -> Write:
    """Call the handler, and tell how long it took."""
    started = monotonic()
    try:
        return call_in_time([attempt], partial(call, attempt), runtime)
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
    return [
        (attempt, answered(attempt, end, failed(attempt, end, now)) if isinstance(end, Exception) else end)
        for attempt, end in outcomes
    ]
