"""Execute attempts side by side: handlers declared with ``async def``."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from asgiref.sync import async_to_sync, sync_to_async

from timeline.definition.handlers import SIDE_BY_SIDE
from timeline.models import ScheduledTask
from timeline.operations._attempting import Attempt
from timeline.operations._calling import enter, handler_of, refusal, returned
from timeline.operations._executing import BUDGET, Executed, Outcome, Setting, record_outcomes
from timeline.operations._failing import catching, drop_if_lost
from timeline.operations._transition import Write


def execute_async(attempts: Sequence[Attempt], setting: Setting) -> Executed:
    """
    Enter handlers side by side, and record how they ended: together what ends within 50 ms.

    What they ask of the database through Django is asked on this thread and its connection, as ``sync_to_async`` does it.

    Args:
        attempts: Begun, and passed by the last look; at least one.
        setting: Where they run.
    """
    return async_to_sync(_side_by_side)(attempts, setting)


async def _side_by_side(attempts: Sequence[Attempt], setting: Setting) -> Executed:
    ended: list[ScheduledTask] = []
    waiting = deque(attempts)
    running: dict[asyncio.Task[Write | Exception], Attempt] = {}
    while True:
        while waiting and len(running) < SIDE_BY_SIDE and not setting.watch.stopping():
            attempt = waiting.popleft()
            if not setting.watch.take(attempt):
                continue
            running[asyncio.create_task(_execute(attempt))] = attempt
        if not running:
            return Executed(ended, list(waiting))
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(running, timeout=BUDGET.total_seconds())
        outcomes: list[Outcome] = [(running.pop(task), _outcome(task)) for task in list(running) if task.done()]
        ended += await sync_to_async(_record)(outcomes, setting)


async def _execute(attempt: Attempt) -> Write | Exception:
    caught: list[Exception] = []
    with catching(caught):
        enter(attempt)  # In the context of this asyncio task, which ends with it.
        refused = await sync_to_async(refusal)(attempt)
        return refused if refused is not None else returned(attempt, await handler_of(attempt)())
    return caught[0]


def _outcome(task: asyncio.Task[Write | Exception]) -> Write | Exception:
    return RuntimeError("the handler was cancelled from within") if task.cancelled() else task.result()


def _record(outcomes: Sequence[Outcome], setting: Setting) -> list[ScheduledTask]:
    for _attempt, end in outcomes:
        if isinstance(end, Exception):
            drop_if_lost(end, setting.using)
    return record_outcomes(outcomes, setting)
