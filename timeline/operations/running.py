"""Run: start tasks, take the last look, enter the handlers, record how they ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from timeline.models import ScheduledTask
from timeline.operations._attempting import begin, begin_group, not_started
from timeline.operations._executing import BUDGET, Setting
from timeline.operations._grouping import run_group
from timeline.operations._watching import Watch

__all__ = ["BUDGET", "Watch", "run", "run_ready"]

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
    setting = Setting(clock, using, watch or Watch())
    place = {task_id: number for number, task_id in enumerate(dict.fromkeys(task_ids))}

    def start(asked: Sequence[UUID]) -> list[UUID]:
        attempts = begin(asked, token=token, worker=worker[:MAX_WORKER], now=clock(), using=using)
        ended.extend(run_group(attempts, setting))
        return [attempt.task.id for attempt in attempts]

    ended: list[ScheduledTask] = []
    started = set(start(task_ids))
    left = [task_id for task_id in place if task_id not in started] if len(place) > 1 else []
    for task_id in not_started(left, token=token, now=clock(), using=using) if left else []:
        if not setting.watch.stopping():
            start([task_id])
    return sorted(ended, key=lambda task: place[task.id])


def run_ready(
    *,
    task_key: str,
    priority: int,
    most: int,
    since: datetime | None = None,
    clock: Callable[[], datetime],
    using: str,
    worker: str = "",
    watch: Watch | None = None,
) -> list[ScheduledTask] | None:
    """
    Run available tasks of one kind and priority, the longest due first. Safe in any number of copies at once.

    Args:
        task_key: Of a known kind.
        priority: Of all of them.
        most: Start no more than so many; one that was tried before is run alone.
        since: When the longest due one was due, where that is known: what is before it in the index need not be read.
        clock, using, worker, watch: As for ``run``.

    Returns:
        The tasks run, with their outcomes; None if there was none to start.
    """
    setting = Setting(clock, using, watch or Watch())
    attempts = begin_group(
        task_key, priority=priority, most=most, since=since, worker=worker[:MAX_WORKER], now=clock(), using=using
    )
    return run_group(attempts, setting) if attempts else None
