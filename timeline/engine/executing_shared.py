"""Execute attempts in a transaction that they share: handlers declared with ``atomic="shared"``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic

from timeline.engine.attempting import Attempt
from timeline.engine.calling import call
from timeline.engine.executing import Executed, Runtime, call_in_time, execute_each, is_time_up
from timeline.engine.hooking import hooks_apart
from timeline.engine.recording import record_together, shared_transaction
from timeline.engine.timing_out import let_go_if_timed_out
from timeline.exceptions import LeaseLost
from timeline.store.errors import catching, drop_if_lost
from timeline.store.writing import Write

logger = logging.getLogger("timeline")


def execute_shared(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Enter handlers one after the other in one transaction, for as long as a group may take, and record their outcomes in it.

    If one of them raises or was no longer ours, if a lock cannot be had or the database refuses, everything is undone,
    and each attempt is left to run in a transaction of its own.

    Args:
        attempts: Of different entities, begun, and passed by the last look; at least one.
        runtime: Where they run.
    """
    return in_one_transaction(attempts, runtime, _execute)


def in_one_transaction(
    attempts: Sequence[Attempt], runtime: Runtime, execute: Callable[[Sequence[Attempt], Runtime], Executed]
) -> Executed:
    """
    Execute attempts together; if that is undone, leave each to run in a transaction of its own. A single one gets its own at
    once.

    Args:
        attempts: Of different entities, begun, and passed by the last look; at least one.
        runtime: Where they run.
        execute: Runs as many as there is time for, in a transaction. Raises the error that undid it.
    """
    if len(attempts) == 1:
        return execute_each(attempts, runtime)
    if runtime.watch.stopping():
        return Executed([], attempts)
    caught: list[Exception] = []
    try:
        with catching(caught):
            return execute(attempts, runtime)
    except LeaseLost as error:
        logger.info("A shared transaction is undone: %s", error)
        let_go_if_timed_out(error)
    for raised in caught:
        drop_if_lost(raised, runtime.using)
    for attempt in attempts:
        attempt.restore()
        attempt.alone = True
    return Executed([], attempts)


def _execute(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Run as many as there is time for; either all of these count, or none.

    Raises:
        LeaseLost: if one of them was no longer ours.
        Exception: whatever one of the handlers, or the database, raises.
    """
    writes: list[Write] = []
    entered: list[Attempt] = []
    since = monotonic()
    with shared_transaction(runtime.using, watch=runtime.watch, entered=entered):
        place, begun = 0, monotonic()
        while place < len(attempts) and not (writes and (is_time_up(since) or runtime.watch.stopping())):
            attempt = attempts[place]
            place += 1
            if runtime.watch.take(attempt):
                entered.append(attempt)
                with hooks_apart([attempt.task.id], using=runtime.using):
                    called = call_in_time([attempt], partial(call, attempt), runtime, undone=entered[:-1])
                    writes.append(called)
        runtime.watch.lend_transaction((), None)  # From here on no handler can hold up the transaction.
        tell_pace(entered, begun, runtime)
        ended = record_together(writes, now=runtime.clock(), using=runtime.using)
        return Executed(ended, attempts[place:])


def tell_pace(entered: Sequence[Attempt], since: float, runtime: Runtime) -> None:
    """
    Tell how long handlers have taken since this ``monotonic()`` time. The time to begin the transaction and to record is not
    counted: it is the same for any number of handlers. If it counted, groups on a slow database would become small, and then
    slower still.
    """
    seconds = monotonic() - since
    for attempt in entered:
        runtime.watch.took(attempt.task.task_key, 1, seconds / len(entered))
