"""Run groups: start tasks, take the last look, enter the handlers, record how they ended. The engine's way in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from enum import Enum
from typing import Final
from uuid import UUID

from timeline import reasons
from timeline.dialects import dialect_of
from timeline.engine.attempts import Attempt, begin_attempts, begin_group, startable, still_ours
from timeline.engine.callbacks import Keeper, Watch
from timeline.engine.execute import BUDGET, Executed, Runtime, done_with, execute_each, in_place_of_the_site
from timeline.engine.execute_async import execute_async
from timeline.engine.execute_atomic import execute_shared, execute_together
from timeline.engine.execute_bulk import execute_bulk
from timeline.engine.finalize import fail_for_time, settle
from timeline.engine.precheck import pass_fresh_look, pass_look
from timeline.lifecycle import Reason, Trigger
from timeline.models import EntityRef, ScheduledTask
from timeline.store.database_errors import catching
from timeline.store.floors import BEGINNING, IndexPlace
from timeline.store.transition import Write

logger = logging.getLogger("timeline")

Execute = Callable[[Sequence[Attempt], Runtime], Executed]


STOPPED: Final = reasons.WORKER_STOPPED()
FAILED: Final = reasons.TURN_ENDED()
HELD_UP: Final = reasons.HELD_UP()

__all__ = [
    "BUDGET",
    "Attempt",
    "Keeper",
    "Look",
    "Watch",
    "begin_given",
    "begin_ready",
    "fail_for_time",
    "give_back",
    "look_ahead",
    "run",
    "run_begun",
    "startable",
]
MAX_WORKER = 100


class Look(Enum):
    """Which part of the last look is still to be done when a group is run."""

    DONE = "they have passed it just now"
    DUE = "they were begun just now"
    DUE_LATE = "they have waited since they were begun: somebody may have cancelled them"


def run_group(attempts: Sequence[Attempt], runtime: Runtime, *, look: Look = Look.DUE) -> list[ScheduledTask]:
    """
    Run attempts that were begun together; ``look`` is the part of the last look that is still to be done. Gives tasks with
    their outcomes; not those that were no longer ours, or were given back because the worker stops.
    """
    runtime.watch.entered(*(attempt.task for attempt in attempts))
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
            runtime.watch.line_up(rest)  # Some may have been entered, in a transaction that was undone.
            _end_if(executed.died, rest, runtime)
        if rest:
            release(rest, STOPPED, now=runtime.clock(), using=runtime.using)
    except BaseException:
        runtime.watch.abandon()
        raise
    finally:
        done_with(attempts, runtime)
    return ended


def _end_if(died: BaseException | None, rest: Sequence[Attempt], runtime: Runtime) -> None:
    """Let go on what a handler has raised to end this thread. Its attempt has failed; the others are given back first."""
    if died is None:
        return
    caught: list[Exception] = []
    with catching(caught):
        ours = [attempt for attempt in rest if runtime.watch.take(attempt)]
        release(ours, FAILED, now=runtime.clock(), using=runtime.using, wait=False)
    if caught:
        logger.warning("What a handler's end leaves is not given back; its leases run out: %s", caught[0])
    raise died


def _execute(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Execute the attempts that run in the same way as the first; leave the others for later. The second task of an entity is
    left, too: its handler must read what the first one wrote, or see that it was undone.
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
    return Executed(executed.ended, [*executed.rest, *left], executed.died)


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


def run(
    *,
    task_ids: Sequence[UUID],
    clock: Callable[[], datetime],
    using: str,
    token: UUID | None = None,
    worker: str = "",
    watch: Watch | None = None,
) -> list[ScheduledTask]:
    """
    Run tasks that are due: available ones, those claimed with this token, and waiting ones whose time has come.

    They start together, except those that were tried before: these run alone, after the others. Not inside a transaction:
    a start is committed before its handler is entered. Gives the tasks run, in order; not those that were not ours any more.
    """
    runtime = Runtime(clock, using, watch or Watch())
    place = {task_id: number for number, task_id in enumerate(dict.fromkeys(task_ids))}
    ended: list[ScheduledTask] = []
    for attempts in begin_given(task_ids=task_ids, clock=clock, using=using, token=token, worker=worker):
        ended += run_group(attempts, runtime)
        if runtime.watch.stopping():
            break
    return sorted(ended, key=lambda task: place[task.id])


def begin_given(
    *,
    task_ids: Sequence[UUID],
    clock: Callable[[], datetime],
    using: str,
    token: UUID | None = None,
    worker: str = "",
    others_run: Callable[[], bool] = bool,
) -> Iterator[list[Attempt]]:
    """
    Start due tasks: first one group, then tasks that were tried before, each when it is asked for. These do not start while
    ``others_run``: one would count as lost if the others end this process. An empty list: ask later.
    """
    place = {task_id: number for number, task_id in enumerate(dict.fromkeys(task_ids))}

    def start(asked: Sequence[UUID], *, retried: bool) -> list[Attempt]:
        return begin_attempts(asked, token=token, worker=worker[:MAX_WORKER], retried=retried, now=clock(), using=using)

    busy = others_run()
    if attempts := start(task_ids, retried=not busy):
        yield attempts
    started = {attempt.task.id for attempt in attempts}
    left = [task_id for task_id in place if task_id not in started] if len(place) > 1 or busy else []
    for task_id in startable(left, token=token, now=clock(), using=using) if left else []:
        if others_run():
            yield []
        if alone := start([task_id], retried=True):
            yield alone


def begin_ready(
    *,
    task_key: str,
    priority: int,
    most: int,
    since: IndexPlace = BEGINNING,
    clock: Callable[[], datetime],
    using: str,
    worker: str = "",
    retried: bool = True,
    parts: frozenset[str] = frozenset(),
) -> list[Attempt]:
    """Start available tasks of one kind and priority, as ``begin_group``. Several processes may do so at once."""
    return begin_group(
        task_key,
        priority=priority,
        most=most,
        since=since,
        worker=worker[:MAX_WORKER],
        retried=retried,
        parts=parts,
        now=clock(),
        using=using,
    )


def run_begun(
    attempts: Sequence[Attempt],
    *,
    clock: Callable[[], datetime],
    using: str,
    watch: Watch | None = None,
    look: Look = Look.DUE,
) -> list[ScheduledTask]:
    """Run tasks that were started together. If ``watch`` records outcomes later, this gives those of earlier groups."""
    return run_group(attempts, Runtime(clock, using, watch or Watch()), look=look)


def look_ahead(
    attempts: Sequence[Attempt], *, clock: Callable[[], datetime], using: str, watch: Watch | None = None
) -> tuple[list[Attempt], list[ScheduledTask]]:
    """Take the last look at tasks that run in a moment; give the attempts that may run, and the tasks that must not."""
    return pass_look(attempts, Runtime(clock, using, watch or Watch()))


def give_back(attempts: Sequence[Attempt], *, now: datetime, using: str, failed: bool = False) -> list[Attempt]:
    """
    Give back tasks that were begun and not entered, or undone, because the worker is held up: due at once, no budget touched.
    ``failed`` is whether an error ended the worker's turn. Returns those whose rows are locked just now, for another try.
    """
    given = {task.id for task in release(attempts, FAILED if failed else HELD_UP, now=now, using=using, wait=False)}
    left = [attempt for attempt in attempts if attempt.task.id not in given]
    return still_ours(left, using=using) if left else []
