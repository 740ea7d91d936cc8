"""Run: start tasks, take the last look, enter the handlers, record how they ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models import ScheduledTask
from timeline.operations._attempting import Attempt, begin
from timeline.operations._executing import conclude, execute
from timeline.operations._looking import look
from timeline.operations._settling import settle
from timeline.operations._transition import Write


class Watch:
    """What a worker lets a run know and learn: whether to stop, and what is being run. This one does neither."""

    def stopping(self) -> bool:
        """Whether to enter no further handler."""
        return False

    def entered(self, task: ScheduledTask) -> None:
        """An attempt is now held; its lease must be kept up."""

    def left(self, task: ScheduledTask) -> None:
        """It is no longer held."""


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

    Must not be called inside a transaction: a start is committed before its handler is entered.

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
    attempts = begin(task_ids, token=token, worker=worker[:100], now=clock(), using=using)
    for attempt in attempts:
        watch.entered(attempt.task)
    try:
        refused = look(attempts, now=clock(), using=using)
        outcomes: list[ScheduledTask | None] = []
        for position, attempt in enumerate(attempts):
            if watch.stopping():
                _release(attempts[position:], now=clock(), using=using)
                break
            if (reason := refused.get(attempt.task.pk)) is not None:
                write = Write(task=attempt.task, triggers=(Trigger.CANCEL,), reason=reason)
                outcomes.append(conclude(write, clock=clock, using=using))
            else:
                outcomes.append(execute(attempt, clock=clock, using=using))
    finally:
        for attempt in attempts:
            watch.left(attempt.task)
    return [task for task in outcomes if task is not None]


def _release(attempts: Sequence[Attempt], *, now: datetime, using: str) -> None:
    """Give back what was started but not entered: due at once, no budget touched."""
    reason = Reason(ReasonCode.RELEASED, "the worker stopped before it got to it")
    writes = [
        Write(task=attempt.task, triggers=(Trigger.RETRY,), scheduled_at=now, reason=reason) for attempt in attempts
    ]
    settle(writes, now=now, using=using)
