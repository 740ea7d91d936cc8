"""Run a group: the last look, the handlers, their outcomes, until each attempt has ended or is given back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import Enum
from typing import Final

from timeline import reasons
from timeline.dialects import dialect_of
from timeline.engine.attempting import Attempt
from timeline.engine.calling import in_place_of_the_site
from timeline.engine.executing import Executed, Runtime, execute_each
from timeline.engine.executing_async import execute_async
from timeline.engine.executing_bulk import execute_bulk
from timeline.engine.executing_shared import execute_shared
from timeline.engine.executing_together import execute_together
from timeline.engine.passing import pass_fresh_look
from timeline.engine.settling import settle
from timeline.lifecycle import Reason, Trigger
from timeline.models import EntityRef, ScheduledTask
from timeline.store.writing import Write

Execute = Callable[[Sequence[Attempt], Runtime], Executed]


STOPPED: Final = reasons.WORKER_STOPPED()
FAILED: Final = reasons.TURN_ENDED()
HELD_UP: Final = reasons.HELD_UP()


class Look(Enum):
    """Which part of the last look is still to be done when a group is run."""

    DONE = "they have passed it just now"
    DUE = "they were begun just now"
    DUE_LATE = "they have waited since they were begun: somebody may have cancelled them"


def run_group(attempts: Sequence[Attempt], runtime: Runtime, *, look: Look = Look.DUE) -> list[ScheduledTask]:
    """
    Run tasks that were started together.

    Args:
        attempts: Attempts that were begun, in the order in which they should run.
        runtime: Where they run.
        look: Which part of the last look is still to be done.

    Returns:
        The tasks with their outcomes; without tasks whose attempt was no longer ours at its end, and without tasks that were
        given back because the worker stops.
    """
    for attempt in attempts:
        runtime.watch.entered(attempt.task)
    ended: list[ScheduledTask] = []
    try:
        rest: Sequence[Attempt] = runtime.watch.remaining(attempts)
        while rest and not runtime.watch.stopping():
            if not rest[0].declared.options.atomic and runtime.watch.make_room():
                rest, look = runtime.watch.remaining(rest), Look.DUE_LATE
                continue
            if look is not Look.DONE:
                rest, refused = pass_fresh_look(rest, runtime, late=look is Look.DUE_LATE)
                ended += refused
            look = Look.DUE_LATE
            with in_place_of_the_site():
                executed = _execute(rest, runtime) if rest else Executed([], [])
            ended += executed.ended
            rest = runtime.watch.remaining(executed.rest)
            runtime.watch.hold(rest)  # Some may have been entered, in a transaction that was undone.
        if rest:
            release(rest, STOPPED, now=runtime.clock(), using=runtime.using)
    except BaseException:
        runtime.watch.abandon()
        raise
    finally:
        for attempt in attempts:
            runtime.watch.left(attempt.task)
    return ended


def _execute(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Execute the attempts that run in the same way as the first; leave the others for later.

    The second task of an entity is left, too: its handler must read what the first one wrote, or see that it was undone.
    """
    way = _way_of(attempts[0], runtime.using)
    chosen, left = [], []
    entities: set[EntityRef] = set()
    for attempt in attempts:
        ref = attempt.task.entity_ref
        if _way_of(attempt, runtime.using) == way and ref not in entities:
            chosen.append(attempt)
            entities |= {ref} if ref.label else set()
        else:
            left.append(attempt)
    executed = way[0](chosen, runtime)
    return Executed(executed.ended, [*executed.rest, *left])


def _way_of(attempt: Attempt, using: str) -> tuple[Execute, str]:
    """The way in which it is executed, and a text that is equal for attempts that may be executed together."""
    if attempt.declared.is_async:
        return execute_async, ""
    if attempt.declared.options.bulk is not None:
        return execute_bulk, attempt.task.task_key
    if attempt.declared.options.atomic == "shared" and not attempt.alone:
        return execute_shared, ""
    if attempt.declared.has_savepoint and not attempt.alone and dialect_of(using).has_set_statements:
        return execute_together, ""
    return execute_each, ""


def release(
    attempts: Sequence[Attempt], reason: Reason, *, now: datetime, using: str, wait: bool = True
) -> list[ScheduledTask]:
    """Give back tasks that were started but not entered: due at once, no budget touched."""
    writes = [
        Write(task=attempt.as_begun(), triggers=(Trigger.RETRY,), scheduled_at=now, reason=reason, entered=False)
        for attempt in attempts
    ]
    return settle(writes, now=now, using=using, wait=wait)
