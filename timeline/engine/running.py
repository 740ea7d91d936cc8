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

    They are started together, but for those that were tried before: these run alone, after the others. Must not be called
    inside a transaction: a start is committed before its handler is entered.

    Args:
        task_ids: In the order they should run. Those that cannot be started are left: somebody else has them, or they ended.
        clock: Tells story time; read at each start and each outcome.
        using: Database alias the tasks live in.
        token: Of the claim, for tasks that came through a broker.
        worker: Who runs them, as shown on the rows; 100 characters at most.
        watch: Asked before each handler, and told of each.

    Returns:
        The tasks run, with their outcomes, in order. Left out: those whose attempt was not ours any more at its end, and
        those released because of ``watch``.
    """
    watch = watch or Watch()
    place = {task_id: number for number, task_id in enumerate(dict.fromkeys(task_ids))}
    ended: list[ScheduledTask] = []
    for attempts in begin_given(task_ids=task_ids, clock=clock, using=using, token=token, worker=worker):
        ended += run_begun(attempts, clock=clock, using=using, watch=watch)
        if watch.stopping():
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
    Start tasks that are due, to be run at once: one group, then those that were tried before, each when it is asked for.

    Args:
        task_ids, clock, using, token, worker: As for ``run``.
        others_run: Asked before each start: whether other handlers run. A task that was tried before is not started then:
            if they end this process, it would count as lost.

    Yields:
        Attempts begun. An empty list means: there is more, ask again when no handler runs.
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
    Start available tasks of one kind and priority, the longest due first, to be run at once. Safe in any number of copies.

    Args:
        task_key: Of a known kind.
        priority: Of all of them.
        most: Start no more than so many; one that was tried before is started alone.
        since: When the longest due one was due, where that is known: what is before it in the index need not be read.
        clock, using, worker: As for ``run``.
        retried: Whether one may be started that was tried before; if not, and it would be its turn, nothing is started.
        on_hold: Whether entities are on hold: what is about them is passed over.

    Returns:
        Attempts; none if there was none to start.
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
    Start available tasks of a kind that has a limit, those for which a place is free. See ``begin_ready``.

    Args:
        kind: Of the tasks.
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
    Run what was started together.

    Args:
        attempts: In the order they should run.
        clock, using, watch: As for ``run``.
        look: What is left of the last look.

    Returns:
        The tasks with their outcomes; as for ``run``, but for the order. Where ``watch`` has outcomes recorded later, it gives
        those of earlier groups.
    """
    return run_group(attempts, Runtime(clock, using, watch or Watch()), look=look)


def look_ahead(
    attempts: Sequence[Attempt], *, clock: Callable[[], datetime], using: str, watch: Watch | None = None
) -> tuple[list[Attempt], list[ScheduledTask]]:
    """
    Take the last look at what is going to run in a moment.

    Args:
        attempts: As they were begun.
        clock, using, watch: As for ``run``.

    Returns:
        Those that may run, each with its entity; and the tasks that have ended because they must not.
    """
    return pass_look(attempts, Runtime(clock, using, watch or Watch()))


def give_back(attempts: Sequence[Attempt], *, now: datetime, using: str, failed: bool = False) -> list[Attempt]:
    """
    Give back what was begun and not entered, or undone, because the worker is held up: due at once, no budget touched.

    Args:
        attempts: That are not going to be entered.
        now: Story time.
        using: Database alias.
        failed: Whether an error has ended the worker's turn; otherwise another task holds it up.

    Returns:
        Those that are still to be given back: somebody else has their rows locked just now.
    """
    given = {task.id for task in release(attempts, FAILED if failed else HELD_UP, now=now, using=using, wait=False)}
    left = [attempt for attempt in attempts if attempt.task.id not in given]
    return still_ours(left, using=using) if left else []
