"""Execute attempts side by side: handlers declared with ``async def``."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async

from timeline.conf import get_settings
from timeline.definition.handlers import SIDE_BY_SIDE
from timeline.engine.attempting import Attempt
from timeline.engine.calling import call_async, enter, refusal
from timeline.engine.executing import BUDGET, Executed, Outcome, Runtime, is_time_up, record_outcomes
from timeline.engine.passing import pass_fresh_look
from timeline.engine.recording_steps_together import StepWriter
from timeline.engine.timing_out import log_lost
from timeline.exceptions import LeaseLost
from timeline.models import EntityRef, ScheduledTask
from timeline.models.entities import NO_ENTITY
from timeline.store.errors import catching, drop_if_lost
from timeline.store.writing import Write

logger = logging.getLogger("timeline")


def execute_async(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Enter handlers side by side, and record how they ended; outcomes that come within 50 ms are recorded together.

    When a slot becomes free while other handlers still run, more tasks of the kind are begun and entered. Django's queries
    of the handlers run on this thread and its connection, as with ``sync_to_async``.

    Args:
        attempts: Attempts that were begun and have passed the last look; at least one.
        runtime: Where they run.
    """
    side_by_side = _SideBySide(attempts, runtime)
    try:
        return async_to_sync(side_by_side.run)()
    finally:
        for attempt in side_by_side.begun:
            runtime.watch.left(attempt.task)


class _SideBySide:
    """
    The attempts that run, and those that wait for a slot.

    Args:
        attempts: Attempts that have passed the last look.
        runtime: Where they run.
    """

    def __init__(self, attempts: Sequence[Attempt], runtime: Runtime) -> None:
        self.begun: list[Attempt] = []  # Begun while others ran.
        self._runtime = runtime
        self._task_key = attempts[0].task.task_key
        self._waiting = deque(attempts)
        self._running: dict[asyncio.Task[Write | Exception | None], Attempt] = {}
        self._outcomes: list[Outcome] = []
        self._ended: list[ScheduledTask] = []
        self._writer = StepWriter(runtime.using)

    async def run(self) -> Executed:
        """Run all attempts, and those begun meanwhile; give those that a stopping worker has not entered."""
        while True:
            while self._waiting and len(self._running) < SIDE_BY_SIDE and not self._runtime.watch.stopping():
                admitted = await sync_to_async(self._admit)()
                for attempt in admitted:
                    task = asyncio.create_task(self._execute(attempt, alone=not self._running))
                    self._running[task] = attempt
                if not admitted:
                    break
            await self._collect()
            if not self._running and (not self._waiting or self._runtime.watch.stopping()):
                await self._writer.wait()
                return Executed(self._ended, list(self._waiting))

    def _admit(self) -> list[Attempt]:
        """
        Choose as many as there are slots for. Attempts that have waited get another look together, and guards are asked.
        """
        chosen = list(self._choose())
        late = [attempt for attempt in chosen if is_time_up(attempt.seen_at)]
        if late:
            passed, refused = pass_fresh_look(late, self._runtime, late=True)
            self._ended += refused
            fresh = {id(attempt) for attempt in passed}
            chosen = [attempt for attempt in chosen if attempt not in late or id(attempt) in fresh]
        admitted: list[Attempt] = []
        for place, attempt in enumerate(chosen):
            if (place or self._running) and is_time_up(attempt.seen_at):
                self._put_back(chosen[place:])
                break
            if self._runtime.watch.take(attempt) and not self._is_refused(attempt):
                admitted.append(attempt)
        return admitted

    def _choose(self) -> Iterator[Attempt]:
        """Take attempts for the free slots out of the waiting ones; never a second task of an entity beside its first."""
        busy: set[EntityRef] = {attempt.task.entity_ref for attempt in self._running.values()} - {NO_ENTITY}
        free = SIDE_BY_SIDE - len(self._running)
        for _ in range(len(self._waiting)):
            attempt = self._waiting.popleft()
            if free and attempt.task.entity_ref not in busy:
                free -= 1
                busy |= {attempt.task.entity_ref} - {NO_ENTITY}
                yield attempt
            else:
                attempt.seen_at = 0.0 if free else attempt.seen_at  # It must read what the first one wrote.
                self._waiting.append(attempt)

    def _is_refused(self, attempt: Attempt) -> bool:
        """Ask the guards, in a context of their own; their answer or their error is the outcome."""
        caught: list[Exception] = []
        with catching(caught):
            refused = copy_context().run(_refusal, attempt)
            if refused is None:
                return False
            self._outcomes.append((attempt, refused))
        self._outcomes += [(attempt, error) for error in caught]
        return True

    def _put_back(self, attempts: Sequence[Attempt]) -> None:
        self._runtime.watch.hold(attempts)
        self._waiting.extendleft(reversed(attempts))

    async def _execute(self, attempt: Attempt, *, alone: bool) -> Write | Exception | None:
        """
        Enter the handler; None if it has become too late for that, because earlier handlers took long before they waited.
        """
        if not alone and is_time_up(attempt.seen_at):
            return None
        caught: list[Exception] = []
        with catching(caught):
            enter(attempt)  # In the context of this asyncio task, which ends with it.
            if attempt.declared.options.timeout is not None:
                self._runtime.watch.under_way(attempt, partial(_cancel, asyncio.get_running_loop(), _this_task()))
            attempt.step_writer = self._writer
            return await call_async(attempt)
        return caught[0]

    async def _collect(self) -> None:
        """Wait until some have ended, record them together, and begin more if others still run."""
        if self._running:
            patience = get_settings().POLL_INTERVAL.total_seconds()
            await asyncio.wait(self._running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if any(task.done() for task in self._running):
                await asyncio.wait(self._running, timeout=BUDGET.total_seconds())
        ended = [task for task in self._running if task.done()]
        late = [attempt for task in ended if (attempt := self._take_down(task)) is not None]
        self._put_back(late)
        outcomes, self._outcomes = self._outcomes, []
        if outcomes:
            self._ended += await sync_to_async(_record)(outcomes, self._runtime)
        if self._running and not self._waiting:
            await sync_to_async(self._begin_more)()

    def _take_down(self, task: asyncio.Task[Write | Exception | None]) -> Attempt | None:
        """Keep the outcome of an attempt, to be recorded; give the attempt back if it was not entered."""
        attempt, outcome = self._running.pop(task), _outcome(task)
        if outcome is None:
            return attempt
        if isinstance(outcome, LeaseLost):
            log_lost(outcome)
        elif attempt.declared.options.timeout is None or self._runtime.watch.is_in_time(attempt):
            self._outcomes.append((attempt, outcome))
        else:
            logger.warning("Attempt %d of task %s is not ours any more.", attempt.task.attempt, attempt.task.id)
        return None

    def _begin_more(self) -> None:
        """Begin tasks for the free slots, and take their last look."""
        free = SIDE_BY_SIDE - len(self._running)
        if free and not (self._runtime.watch.stopping() or self._runtime.watch.is_full()):
            attempts = self._runtime.watch.more(self._task_key, free)
            for attempt in attempts:
                self._runtime.watch.entered(attempt.task)
            self.begun += attempts
            passed, refused = pass_fresh_look(attempts, self._runtime, late=False)
            self._ended += refused
            self._waiting.extend(passed)


def _this_task() -> asyncio.Task[Any]:
    this = asyncio.current_task()
    assert this is not None  # noqa: S101 (it is asked within one)
    return this


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    with suppress(RuntimeError):  # The loop is closed: the handler has ended meanwhile.
        loop.call_soon_threadsafe(task.cancel)


def _refusal(attempt: Attempt) -> Write | None:
    enter(attempt)
    return refusal(attempt)


def _outcome(task: asyncio.Task[Write | Exception | None]) -> Write | Exception | None:
    """The result of a handler; LeaseLost, if the attempt is not ours any more."""
    if task.cancelled():
        return RuntimeError("the handler was cancelled from within")
    try:
        return task.result()
    except LeaseLost as error:
        return error


def _record(outcomes: Sequence[Outcome], runtime: Runtime) -> list[ScheduledTask]:
    for _attempt, end in outcomes:
        if isinstance(end, Exception):
            drop_if_lost(end, runtime.using)
    return record_outcomes(outcomes, runtime)
