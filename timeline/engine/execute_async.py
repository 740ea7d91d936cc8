"""Execute attempts side by side: handlers declared with ``async def``."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from copy import copy
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeVar

from asgiref.sync import AsyncToSync, async_to_sync, sync_to_async

from timeline.conf import get_settings
from timeline.definition.handlers import SIDE_BY_SIDE
from timeline.engine.attempts import Attempt
from timeline.engine.execute import (
    BUDGET,
    Executed,
    Outcome,
    Runtime,
    deadly,
    done_with,
    enter,
    handler_of,
    is_time_up,
    record_outcomes,
    refusal,
    returned,
)
from timeline.engine.failures import at_rest
from timeline.engine.finalize import log_lost
from timeline.engine.precheck import pass_fresh_look
from timeline.exceptions import LeaseLost, Rest
from timeline.features.steps.recorder import StepWriter
from timeline.hooks import around, hooks
from timeline.models import EntityRef, ScheduledTask
from timeline.models.entities import NO_ENTITY
from timeline.store.database_errors import catching, drop_if_lost
from timeline.store.transition import Write

Answer = TypeVar("Answer")

logger = logging.getLogger("timeline")


class Guise(BaseException):
    """``SystemExit`` or ``KeyboardInterrupt`` of a task, so that it goes to who waits for the task, and the loop goes on."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def own(error: BaseException) -> BaseException:
    """What a coroutine has raised, out of its guise."""
    found = error.subgroup(Guise) if isinstance(error, BaseExceptionGroup) else error
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found.error if isinstance(found, Guise) else error


class LoopBeside(Generic[Answer]):
    """Runs a coroutine on a loop of its own. An error from outside goes to ``break_in``, on the loop; the coroutine goes on."""

    def __init__(self, main: Callable[[], Awaitable[Answer]], break_in: Callable[[BaseException], object]) -> None:
        self._main = main
        self._break_in = break_in
        self._over: Future[Answer] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._here: Any = None  # What does on this thread what coroutines ask for.

    def run(self) -> Answer:
        """Run it to its end."""
        act: Callable[[], Answer] = async_to_sync(self._run)
        while True:
            try:
                return act()
            except BaseException as error:
                if self._loop is None or self._here is None or self._over.done():
                    raise
                self._loop.call_soon_threadsafe(self._break_in, error)
            act = self._go_on

    def _go_on(self) -> Answer:
        self._here._broken = False  # Before asgiref 3.9, it takes nothing more after an error.
        self._here.run_until_future(self._over)
        return self._over.result()

    async def _run(self) -> Answer:
        self._loop, self._here = asyncio.get_running_loop(), getattr(AsyncToSync.executors, "current", None)
        is_own = (
            AsyncToSync.loop_thread_executors.get(self._loop) is self._here
        )  # Otherwise the loop is somebody else's.
        if is_own:
            self._loop.set_task_factory(_task_of)
        end = Future[Answer]()
        try:
            end.set_result(await self._main())
            return end.result()
        except BaseException as error:
            end.set_exception(error)
            raise
        finally:
            if is_own:
                _after_close(self._loop, partial(_pass_on, end, self._over))
            else:
                _pass_on(end, self._over)


def _after_close(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    """Act when a loop is closed: before, asgiref would give it the next coroutine of its thread, which would never run."""
    close = loop.close

    def close_and_act() -> None:
        close()  # It raises while the loop runs; then it is closed later.
        vars(loop).pop("close", None)  # Else the loop, and all that came of it, would stay until the cycle is found.
        act()

    loop.close = close_and_act  # type: ignore[method-assign]


def _pass_on(end: Future[Answer], over: Future[Answer]) -> None:
    if (error := end.exception()) is not None:
        over.set_exception(error)
    else:
        over.set_result(end.result())


def _task_of(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(_InGuise(coroutine), loop=loop, **options)


class _InGuise(Coroutine[Any, Any, Any]):
    """A coroutine; not one around it, which would leave it unawaited where its task is cancelled before it begins."""

    __slots__ = ("_own",)

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._own = coroutine

    def send(self, value: Any) -> Any:
        try:
            return self._own.send(value)
        except (SystemExit, KeyboardInterrupt) as error:
            raise Guise(error) from error

    def throw(self, *raised: Any) -> Any:
        try:
            return self._own.throw(*raised)
        except (SystemExit, KeyboardInterrupt) as error:
            raise Guise(error) from error

    def close(self) -> None:
        self._own.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._own.__await__()


def execute_async(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Enter handlers, which have passed the last look, side by side; outcomes within 50 ms are recorded together.

    A free slot is given to another task of the kind while others still run. Django's queries of the handlers run on this thread
    and its connection, as with ``sync_to_async``.
    """
    side_by_side = _SideBySide(attempts, runtime)
    try:
        return LoopBeside(side_by_side.run, side_by_side.break_off).run()
    finally:
        done_with(side_by_side.begun, runtime)


class _SideBySide:
    """The attempts that run, and those that wait for a slot."""

    def __init__(self, attempts: Sequence[Attempt], runtime: Runtime) -> None:
        self.begun: list[Attempt] = []  # Begun while others ran.
        self._runtime = runtime
        self._task_key = attempts[0].task.task_key
        self._waiting = deque(attempts)
        self._running: dict[asyncio.Task[Write | BaseException | None], Attempt] = {}
        self._since: dict[asyncio.Task[Any], float] = {}  # When each began, by ``monotonic()``.
        self._broken_off: dict[asyncio.Task[Any], BaseException] = {}
        self._outcomes: list[Outcome] = []
        self._ended: list[ScheduledTask] = []
        self._died: BaseException | None = None  # What a handler has raised that ends this thread.
        self._writer = StepWriter(runtime.using)

    async def run(self) -> Executed:
        """
        Run all attempts, and those begun meanwhile; give those that a stopping worker has not entered. If a handler ends this
        thread, no other is entered, and those that run are waited for.
        """
        loop = asyncio.get_running_loop()
        while True:
            while self._waiting and len(self._running) < SIDE_BY_SIDE and not self._is_stopping():
                admitted = await sync_to_async(self._admit)()
                for attempt in admitted:
                    # It raises nothing that would end the loop, and needs no guise.
                    task = asyncio.Task(self._execute(attempt, alone=not self._running), loop=loop)
                    self._running[task], self._since[task] = attempt, monotonic()
                if not admitted:
                    break
            await self._collect()
            if not self._running and (not self._waiting or self._is_stopping()):
                await self._writer.wait()
                return Executed(self._ended, list(self._waiting), self._died)

    def break_off(self, error: BaseException) -> None:
        """Cancel handlers on an error from outside: those that ran as long as the first, or all if it ends this thread."""
        self._died = self._died or deadly(error)
        first = min(map(self._since.__getitem__, self._running), default=0.0)
        late = [task for task in self._running if self._died or self._since[task] - first <= BUDGET.total_seconds()]
        if not late:
            logger.warning("An error came while no handler ran, and is nobody's: %r", error)
        for task in late:
            self._broken_off[task] = error
            task.cancel()

    def _is_stopping(self) -> bool:
        return self._died is not None or self._runtime.watch.stopping()

    def _admit(self) -> list[Attempt]:
        """Choose as many as there are slots. Those that have waited get another look together, and guards are asked."""
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
        try:
            with catching(caught):
                refused = copy_context().run(_refusal, attempt)
                if refused is None:
                    return False
                self._outcomes.append((attempt, refused))
        except Exception:
            raise
        except BaseException as died:  # noqa: BLE001 (raised when the others have ended)
            self._outcomes.append((attempt, self._dies(died)))
        self._outcomes += [(attempt, error) for error in caught]
        return True

    def _dies(self, error: BaseException) -> BaseException:
        """Host's code has raised what ends this thread, if it is no coroutine that was cancelled."""
        error = own(error)
        self._died = self._died or deadly(error)
        return error

    def _put_back(self, attempts: Sequence[Attempt]) -> None:
        self._runtime.watch.line_up(attempts)
        self._waiting.extendleft(reversed(attempts))

    async def _execute(self, attempt: Attempt, *, alone: bool) -> Write | BaseException | None:
        """Enter the handler; None if it is too late for that, because earlier handlers took long before they waited."""
        if not alone and is_time_up(attempt.seen_at):
            return None
        caught: list[Exception] = []
        try:
            with catching(caught):
                enter(attempt)  # In the context of this asyncio task, which ends with it.
                if attempt.declared.options.timeout is not None:
                    self._runtime.watch.under_way(attempt, partial(_cancel, asyncio.get_running_loop(), _this_task()))
                attempt.step_writer = self._writer
                return await call_async(attempt)
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException as died:  # noqa: BLE001 (raised when the others have ended: it would end their loop)
            return self._dies(died)
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

    def _take_down(self, task: asyncio.Task[Write | BaseException | None]) -> Attempt | None:
        """Keep the outcome of an attempt, to be recorded; give the attempt back if it was not entered."""
        attempt, outcome = self._running.pop(task), _outcome(task, self._broken_off.pop(task, None))
        del self._since[task]
        if outcome is None:
            return attempt
        if isinstance(outcome, LeaseLost):
            log_lost(outcome)
        elif self._died is not None and self._runtime.watch.is_killed() and not isinstance(outcome, Write):
            logger.info("Attempt %d of task %s ends with its process.", attempt.task.attempt, attempt.task.id)
        elif attempt.declared.options.timeout is None or self._runtime.watch.is_in_time(attempt):
            self._outcomes.append((attempt, outcome))
        else:
            logger.warning("Attempt %d of task %s is not ours any more.", attempt.task.attempt, attempt.task.id)
        return None

    def _begin_more(self) -> None:
        """Begin tasks for the free slots, and take their last look."""
        free = SIDE_BY_SIDE - len(self._running)
        if free and not (self._is_stopping() or self._runtime.watch.is_full()):
            attempts = self._runtime.watch.more(self._task_key, free)
            self._runtime.watch.entered(*(attempt.task for attempt in attempts))
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


def _outcome(
    task: asyncio.Task[Write | BaseException | None], broken_off: BaseException | None
) -> Write | BaseException | None:
    """The result of a handler, or why it was broken off; LeaseLost, if the attempt is not ours any more."""
    try:
        return task.result()
    except asyncio.CancelledError as cancelled:
        if broken_off is None:
            return RuntimeError("the handler was cancelled from within")
        with suppress(Exception):  # Several are broken off at once, each at a place of its own.
            broken_off = copy(broken_off)
        broken_off.__cause__ = cancelled
        return broken_off
    except LeaseLost as error:
        return error


def _record(outcomes: Sequence[Outcome], runtime: Runtime) -> list[ScheduledTask]:
    for _attempt, end in outcomes:
        if isinstance(end, BaseException):
            drop_if_lost(end, runtime.using)
    return record_outcomes(outcomes, runtime)


async def call_async(attempt: Attempt) -> Write:
    """
    Enter an async handler, and take its result. Steps that still run when it ends belong to it, and are waited for. An
    exception that is alone in a group is raised without the group.
    """
    try:
        try:
            with around(hooks().calls, (attempt,)):
                return returned(attempt, await _whole(attempt, handler_of(attempt)()))
        except BaseExceptionGroup as several:
            if attempt.steps is not None:
                attempt.steps.see_end()  # The error that ended the attempt may be anywhere in this group.
            if (alone := _alone(several)) is not several:
                raise alone from several
            raise
    except Rest as rest:
        return at_rest(attempt, rest.with_traceback(None))  # As in ``call``.


async def _whole(attempt: Attempt, handler: Awaitable[object]) -> object:
    raised: BaseException | None = None
    try:
        return await handler
    except BaseException as error:
        raised = error
        raise
    finally:
        if attempt.steps is not None:
            broken_off = isinstance(raised, asyncio.CancelledError)
            await attempt.steps.wait_for_those_beside(failed=raised is not None, cancel=broken_off)


def _alone(error: BaseException) -> BaseException:
    """The only exception in a group; the group itself if it has several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
