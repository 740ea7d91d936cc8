"""Enter handlers, one after the other, for as long as a group may take; each in the zone and language of its entity."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections
from django.utils import timezone, translation

from timeline import reasons
from timeline.definition import Then, Timeline
from timeline.engine.attempts import Attempt, guard_reason
from timeline.engine.callbacks import Watch
from timeline.engine.failures import at_rest
from timeline.engine.finalize import let_go_if_timed_out, log_lost, outcome_of, record_all, record_together
from timeline.exceptions import LeaseLost, Rest
from timeline.features.machines.outcomes import checked
from timeline.hooks import around, asked_for, hooks
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models import ScheduledTask
from timeline.models.facts import language_of, zone_of
from timeline.models.task_records import REENTERED
from timeline.operations.current import now_running
from timeline.payloads import json_text
from timeline.store.database_errors import catching, drop_if_lost
from timeline.store.transactions import atomic
from timeline.store.transition import Write

# How long a group may take before its outcomes are written: after a crash, this much is repeated.
BUDGET: Final = timedelta(milliseconds=50)

Outcome = tuple[Attempt, Write | BaseException]
Answer = TypeVar("Answer")

# What a handler's call may end in without ending its thread.
_KEEPS_THREAD: Final = (Write, Exception, asyncio.CancelledError)
_DONE = Reason(ReasonCode.DONE)
_IN_SHADOW = reasons.IN_SHADOW()
logger = logging.getLogger("timeline")
_FAILED = "%r, called on commit of task %s, which has completed, raised: %s"


@dataclass(frozen=True, slots=True)
class Runtime:
    """Where a group runs: story time, database, and the watch that says whether to go on."""

    clock: Callable[[], datetime]
    using: str
    watch: Watch


class Executed(NamedTuple):
    """
    How much of a group is done.

    Args:
        rest: Attempts for which there was no time; they need a fresh last look.
        died: What a handler raised that ends this thread, such as ``SystemExit``; its attempt has failed.
    """

    ended: list[ScheduledTask]
    rest: Sequence[Attempt]
    died: BaseException | None = None


def call(attempt: Attempt) -> Write:
    """
    Ask the guards, enter the handler unless the timeline is in shadow, and take its result. What the handler sets on this
    thread (language, time zone, context variables) ends with it. Its errors are raised.
    """
    return copy_context().run(_call, attempt)


def _call(attempt: Attempt) -> Write:
    enter(attempt)
    refused = refusal(attempt)
    if refused is not None:
        return refused
    try:
        with around(hooks().calls, (attempt,)):
            return returned(attempt, handler_of(attempt)())
    except Rest as rest:
        return at_rest(attempt, rest.with_traceback(None))  # Its frames hold the context, which holds it: a cycle.


@contextmanager
def in_place_of_the_site() -> Iterator[None]:
    """Set zone and language to the site's; changes of them end with the block."""
    with timezone.override(timezone.get_default_timezone()), translation.override(translation.get_language()):
        yield


def enter(attempt: Attempt) -> None:
    """Mark the task as being run, and set zone and language to the entity's where its timeline says so, in this context."""
    now_running(attempt.task.id)
    if attempt.definition.cls.time_zone:
        timezone.activate(zone_of(attempt.definition, attempt.entity))
    if attempt.definition.cls.language and (language := language_of(attempt.definition, attempt.entity)):
        translation.activate(language)


def refusal(attempt: Attempt) -> Write | None:
    """How an attempt ends whose handler must not be entered: a guard refuses, or the timeline is in shadow."""
    for is_for, ask in hooks().before_entry:
        if is_for(attempt) and (write := ask(attempt, _alias_of(attempt))) is not None:
            return write
    if attempt.has_records:  # A half-done task goes on, whatever a guard says by now.
        return None
    for option, guard in attempt.declared.function_guards:
        if bool(guard(attempt.entity)) is (option != "only_if"):
            reason = guard_reason(option, guard)
            return Write(task=attempt.task, triggers=(Trigger.CANCEL,), reason=reason, entered=False)
    if attempt.definition.shadow:
        return Write(task=attempt.task, triggers=(Trigger.COMPLETE,), reason=_IN_SHADOW)
    return None


def _alias_of(attempt: Attempt) -> str:
    return attempt.task._state.db or DEFAULT_DB_ALIAS


def handler_of(attempt: Attempt) -> Callable[[], Any]:
    """The handler, with its context and its entity bound; it is called without arguments."""
    using = _alias_of(attempt)
    context = attempt.definition.cls(**attempt.told(), awaited=attempt.awaited)
    equip(context, attempt, using)
    method = attempt.declared.bound_to(context)
    return partial(method, attempt.entity) if attempt.definition.label else method


def equip(context: Timeline, attempt: Attempt, using: str) -> None:
    """Give a context what features need there: some now, some when it is used."""
    for is_for, give in hooks().contexts:
        if is_for(attempt):
            give(context, attempt, using)
    context._make_part = partial(_part, attempt, using)  # Without the context, which would hold itself.


def _part(attempt: Attempt, using: str, context: Timeline, name: str) -> Any:
    return dict(hooks().parts)[name](context, attempt, using)


def returned(attempt: Attempt, result: object) -> Write:
    """
    Turn the return value of a handler into its outcome. Raises ``NotPlainJSON`` or ``PayloadTooLarge`` for ``result``,
    ``InvalidInput`` for an event that its machine does not have, and ``Rest`` if the code has changed, and the handler did not
    reach some steps that are done.
    """
    if attempt.steps is not None:
        attempt.steps.see_end()
    then = None
    if isinstance(result, Then):
        then, result = result, checked(result, attempt.definition)
    text = None if result is None else json_text("result", result)
    fans = attempt.fanned_out.end() if attempt.fanned_out is not None else {}
    return Write(task=attempt.task, triggers=(Trigger.COMPLETE,), reason=_DONE, result=text, fans_out=fans, then=then)


def execute_each(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Enter handlers, which have passed the last look, one after the other, and record how they ended.

    An atomic handler shares one transaction with its outcome and its follow-ups. If the attempt is no longer ours, the write of
    the outcome fails, and the transaction is undone. Other handlers run in no transaction; their outcomes are written together.
    """
    ended: list[ScheduledTask] = []
    outcomes: deque[Outcome] = deque()
    runtime.watch.lend(partial(_record_early, outcomes, ended, runtime))
    place, died = 0, None
    try:
        while place < len(attempts) and died is None and not runtime.watch.stopping():
            waited = runtime.watch.keep_up()
            if (place or waited) and is_time_up(attempts[place].seen_at):
                break
            attempt = attempts[place]
            place += 1
            if not runtime.watch.take(attempt):
                continue
            outcome = _execute(attempt, runtime)
            if isinstance(outcome, ScheduledTask):
                ended.append(outcome)
            elif outcome is not None:
                outcomes.append((attempt, outcome))
                died = deadly(outcome)
    finally:  # Also if the process is being ended: earlier handlers have ended, and must not be entered again.
        runtime.watch.lend(None)
        if outcomes:
            tasks = [attempt.task for attempt, _end in outcomes]
            ended += runtime.watch.settle(tasks, partial(record_outcomes, list(outcomes), runtime))
    return Executed(ended, attempts[place:], died)


def deadly(outcome: Write | BaseException) -> BaseException | None:
    """What a handler raised, if it ends the thread: no ``Exception``, and not a cancelled coroutine, which ends only itself."""
    return None if isinstance(outcome, _KEEPS_THREAD) else outcome


def call_in_time(
    attempts: Sequence[Attempt], act: Callable[[], Answer], runtime: Runtime, *, undone: Sequence[Attempt] = ()
) -> Answer:
    """Call a handler, with its time limit if it has one; ``TimedOut`` if that is over: then its attempts have failed."""
    if attempts[0].declared.options.timeout is None:
        return act()
    return runtime.watch.call(attempts, act, undone=undone)


def _record_early(outcomes: deque[Outcome], ended: list[ScheduledTask], runtime: Runtime) -> None:
    """Let another thread record the finished outcomes, while a handler holds up this thread."""
    taken = [outcomes.popleft() for _ in range(len(outcomes))]
    try:
        ended += record_outcomes(taken, runtime)
    except BaseException:
        outcomes.extendleft(reversed(taken))
        raise


def is_time_up(since: float) -> bool:
    """Whether a group that began at this ``monotonic()`` time needs a fresh look before it enters another handler."""
    return monotonic() - since >= BUDGET.total_seconds()


def _execute(attempt: Attempt, runtime: Runtime) -> ScheduledTask | Write | BaseException | None:
    """Enter one handler. Give the task if its outcome is recorded, else the outcome; None if the attempt was no longer ours."""
    caught: list[Exception] = []
    enter = partial(_enter, attempt, runtime)
    try:
        with catching(caught):
            if attempt.declared.options.atomic:
                with atomic(using=runtime.using, durable=True):
                    with hooks_apart([attempt.task.id], using=runtime.using):
                        write = enter()
                    return record_together([write], now=runtime.clock(), using=runtime.using)[0]
            return enter()
    except LeaseLost as error:
        tell_undone([attempt], error)
        log_lost(error)
        let_go_if_timed_out(error)
        return None
    except BaseException as died:
        if runtime.watch.is_killed():
            raise
        return undone([attempt], died, runtime)
    return undone([attempt], caught[0], runtime)


def undone(attempts: Sequence[Attempt], error: BaseException, runtime: Runtime) -> BaseException:
    """Let go of a lost connection after an error has undone a call, and set its tasks back; give the error."""
    drop_if_lost(error, runtime.using)
    tell_undone(attempts, error)
    for attempt in attempts:
        attempt.restore()
    return error


def tell_undone(attempts: Sequence[Attempt], error: BaseException) -> None:
    """Tell those who look on that what handlers wrote is undone."""
    for tell in asked_for(hooks().undone, attempts):
        tell(attempts, error)


def done_with(attempts: Sequence[Attempt], runtime: Runtime) -> None:
    """Hold attempts no longer: their handlers were entered, or will not be here."""
    runtime.watch.left(*(attempt.task for attempt in attempts))
    for tell in asked_for(hooks().left, attempts):
        tell(attempts)


def _enter(attempt: Attempt, runtime: Runtime) -> Write:
    """Call the handler, and tell how long it took."""
    started = monotonic()
    try:
        write = call_in_time([attempt], partial(call, attempt), runtime)
        if attempt.undone:
            write.evidence[REENTERED] = attempt.undone
        return write
    finally:
        runtime.watch.took(attempt.task.task_key, 1, monotonic() - started)


def record_outcomes(outcomes: Sequence[Outcome], runtime: Runtime) -> list[ScheduledTask]:
    """Record those outcomes that are not recorded yet."""
    if not outcomes:
        return []
    now = runtime.clock()
    return record_all(as_writes(outcomes, now), now=now, using=runtime.using, keeper=runtime.watch.keeper())


def as_writes(outcomes: Sequence[Outcome], now: datetime) -> list[tuple[Attempt, Write]]:
    """Turn the errors that were raised into the outcomes they ask for."""
    return [(attempt, end if isinstance(end, Write) else outcome_of(attempt, end, now)) for attempt, end in outcomes]


class hooks_apart:
    """
    Log errors of hooks that are registered within the block, and call the other hooks all the same. The outcome is committed
    by then: an error would look like a commit that failed, and stop the hooks of other tasks.
    """

    # No generator: it would take three times as long, and this is entered for each step.
    __slots__ = ("_before", "_connection", "_task_ids")

    def __init__(self, task_ids: Sequence[UUID], *, using: str) -> None:
        self._task_ids = task_ids
        self._connection: Any = connections[using]

    def __enter__(self) -> None:
        """Note which hooks are there already."""
        self._before = len(self._connection.run_on_commit)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Wrap those that came since. After an error they are gone with the transaction."""
        hooks = self._connection.run_on_commit
        if error is None and len(hooks) > self._before:
            hooks[self._before :] = [
                (savepoints, _harmless(hook, self._task_ids), robust)
                for savepoints, hook, robust in hooks[self._before :]
            ]


def _harmless(hook: Callable[[], object], task_ids: Sequence[UUID]) -> Callable[[], None]:
    def call() -> None:
        try:
            hook()
        except BaseException as error:
            ids = [str(task_id) for task_id in task_ids]
            bound = {"task_id": ids[0], **({"task_ids": ids} if len(ids) > 1 else {})}
            logger.exception(_FAILED, hook, ", ".join(ids), error, extra=bound)
            if not isinstance(error, Exception):
                raise

    return call
