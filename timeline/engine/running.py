"""Run: start tasks, take the last look, enter the handlers, record how they ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from uuid import UUID

from timeline.engine.attempting import Attempt, begin_attempts, begin_group, startable, still_ours
from timeline.engine.executing import BUDGET, Runtime
from timeline.engine.grouping import FAILED, HELD_UP, Look, release, run_group
from timeline.engine.limiting import begin_limited
from timeline.engine.passing import pass_look
from timeline.engine.timing_out import fail_for_time
from timeline.engine.watching import Keeper, Watch
from timeline.models import ScheduledTask
from timeline.store.limited_kinds import LimitedKind

__all__ = [
    "BUDGET",
    "Attempt",
    "Keeper",
    "Look",
    "Watch",
    "begin_given",
    "begin_ready",
    "begin_with_place",
    "fail_for_time",
    "give_back",
    "look_ahead",
    "run",
    "run_begun",
    "startable",
]

MAX_WORKER = 100


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

    They are started together, except tasks that were tried before: these run alone, after the others. Must not be called
    inside a transaction, because a start is committed before its handler is entered.

    Args:
        task_ids: In the order in which they should run. A task that cannot be started is left: somebody else has it, or it
            has ended.
        clock: Tells story time; read at each start and each outcome.
        using: Database alias the tasks live in.
        token: The token of the claim, for tasks that came through a broker.
        worker: Name of the worker, as shown on the rows; 100 characters at most.
        watch: Asked before each handler, and told of each.

    Returns:
        The tasks run, with their outcomes, in order. Left out: those whose attempt was not ours any more at its end, and
        those released because of ``watch``.
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
    Start due tasks, to be run at once: first one group, then tasks that were tried before, each when it is asked for.

    Args:
        task_ids, clock, using, token, worker: As for ``run``.
        others_run: Asked before each start: whether other handlers run. Then a task that was tried before is not started: if
            the others end this process, it would count as lost.

    Yields:
        Attempts begun. An empty list means that there are more tasks: ask again when no handler runs.
    """
    place = {task_id: number for number, task_id in enumerate(dict.fromkeys(task_ids))}

    def start(asked: Sequence[UUID], *, retried: bool) -> list[Attempt]:
        return begin_attempts(asked, token=token, worker=worker[:MAX_WORKER], retried=retried, now=clock(), using=using)

    busy = others_run()
    attempts = start(task_ids, retried=not busy)
    if attempts:
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
    since: datetime | None = None,
    clock: Callable[[], datetime],
    using: str,
    worker: str = "",
    retried: bool = True,
    on_hold: bool = False,
) -> list[Attempt]:
    """
    Start available tasks of one kind and priority, the longest due first, to be run at once. Several processes may do so at
    once.

    Args:
        task_key: Key of a kind that this process knows.
        priority: The priority of all of them.
        most: Start at most so many; a task that was tried before is started alone.
        since: When the longest due task was due, if that is known: earlier parts of the index need not be read.
        clock, using, worker: As for ``run``.
        retried: Whether a task that was tried before may be started; if not, and it is the next, nothing is started.
        on_hold: Whether any entities are on hold: then tasks about them are skipped.

    Returns:
        Attempts; none if there was no task to start.
    """
    return begin_group(
        task_key,
        priority=priority,
        most=most,
        since=since,
        worker=worker[:MAX_WORKER],
        retried=retried,
        on_hold=on_hold,
        now=clock(),
        using=using,
    )


def begin_with_place(
    *,
    kind: LimitedKind,
    most: int,
    clock: Callable[[], datetime],
    using: str,
    worker: str = "",
    retried: bool = True,
) -> list[Attempt]:
    """
    Start available tasks of a kind that has a limit, if they can get a place. See ``begin_ready``.

    Args:
        kind: The kind of the tasks.
        most, clock, using, worker, retried: As for ``begin_ready``.
    """
    return begin_limited(
        kind,
        most=most,
        worker=worker[:MAX_WORKER],
        retried=retried,
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
    """
    Run tasks that were started together.

    Args:
        attempts: In the order in which they should run.
        clock, using, watch: As for ``run``.
        look: Which part of the last look is still to be done.

    Returns:
        The tasks with their outcomes, as for ``run``, but in any order. If ``watch`` lets outcomes be recorded later, it
        gives those of earlier groups.
    """
    return run_group(attempts, Runtime(clock, using, watch or Watch()), look=look)


def look_ahead(
    attempts: Sequence[Attempt], *, clock: Callable[[], datetime], using: str, watch: Watch | None = None
) -> tuple[list[Attempt], list[ScheduledTask]]:
    """
    Take the last look at tasks that are going to run in a moment.

    Args:
        attempts: As they were begun.
        clock, using, watch: As for ``run``.

    Returns:
        The attempts that may run, each with its entity; and the tasks that have ended because they must not run.
    """
    return pass_look(attempts, Runtime(clock, using, watch or Watch()))


def give_back(attempts: Sequence[Attempt], *, now: datetime, using: str, failed: bool = False) -> list[Attempt]:
    """
    Give back tasks that were begun and not entered, or undone, because the worker is held up: due at once, no budget touched.

    Args:
        attempts: Attempts that are not going to be entered.
        now: Story time.
        using: Database alias.
        failed: Whether an error has ended the worker's turn; otherwise another task holds it up.

    Returns:
        Attempts that still have to be given back: somebody else has their rows locked just now.
    """
    given = {task.id for task in release(attempts, FAILED if failed else HELD_UP, now=now, using=using, wait=False)}
    left = [attempt for attempt in attempts if attempt.task.id not in given]
    return still_ours(left, using=using) if left else []
