"""Execute attempts of one kind in one call: handlers declared with ``bulk``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import copy_context
from functools import partial

from django.utils.translation import gettext_lazy as _

from timeline.definition import Context
from timeline.engine.attempts import Attempt, still_ours
from timeline.engine.execute import (
    Executed,
    Outcome,
    Runtime,
    as_writes,
    call_in_time,
    deadly,
    equip,
    hooks_apart,
    is_time_up,
    refusal,
    returned,
    undone,
)
from timeline.engine.finalize import let_go_if_timed_out, log_lost, outcome_of, record_all, record_together
from timeline.engine.precheck import look_again
from timeline.exceptions import InvalidInput, LeaseLost, TimedOut
from timeline.hooks import around, hooks
from timeline.models import ScheduledTask
from timeline.operations.current import now_running
from timeline.store.database_errors import catching
from timeline.store.transactions import atomic
from timeline.store.transition import Write


def execute_bulk(attempts: Sequence[Attempt], runtime: Runtime) -> Executed:
    """
    Enter the handler once for many entities, and record how each one's task ended; what it does not take is left.

    An atomic handler shares one transaction with all outcomes. If an attempt was no longer ours when they are written,
    everything is undone and the other attempts are left for another call.
    """
    if runtime.watch.stopping():
        return Executed([], attempts)
    most = attempts[0].declared.options.bulk
    rest = attempts[most:]
    together = [attempt for attempt in attempts[:most] if runtime.watch.take(attempt)]
    if not together:
        return Executed([], rest)
    try:
        return _executed(together, rest, runtime)
    except LeaseLost as error:
        log_lost(error)
        let_go_if_timed_out(error)
        timed_out = isinstance(error, TimedOut)
    for attempt in together:
        attempt.restore()
    ours = still_ours(together, using=runtime.using)
    if len(ours) == len(together) and not timed_out:
        ours = []  # No row said that an attempt was lost: the leases of all run out.
    for attempt in ours:
        attempt.note_undone("the call that it shared is undone: one of its tasks was not ours any more")
    return Executed([], [*ours, *rest])


def _executed(attempts: Sequence[Attempt], rest: Sequence[Attempt], runtime: Runtime) -> Executed:
    try:
        return Executed(_execute(attempts, runtime), rest)
    except Exception:
        raise
    except BaseException as died:
        if runtime.watch.is_killed():
            raise
        return Executed(_fail(attempts, died, runtime), rest, deadly(died))


def _execute(attempts: Sequence[Attempt], runtime: Runtime) -> list[ScheduledTask]:
    """Call and record; ``LeaseLost`` if an attempt was no longer ours, and writes of an atomic handler are undone."""
    caught: list[Exception] = []
    outcomes: list[Outcome] = []
    with catching(caught):
        if attempts[0].declared.options.atomic:
            with atomic(using=runtime.using, durable=True):
                with hooks_apart([attempt.task.id for attempt in attempts], using=runtime.using):
                    outcomes = copy_context().run(_call, attempts, runtime)
                now = runtime.clock()
                together = [write for _attempt, write in as_writes(outcomes, now)]
                return record_together(together, now=now, using=runtime.using)
        outcomes = copy_context().run(_call, attempts, runtime)
    if not caught:
        now = runtime.clock()
        return record_all(as_writes(outcomes, now), now=now, using=runtime.using, keeper=runtime.watch.keeper())
    return _fail(attempts, caught[0], runtime)


def _fail(attempts: Sequence[Attempt], error: BaseException, runtime: Runtime) -> list[ScheduledTask]:
    """Record that the call has failed."""
    undone(attempts, error, runtime)
    now, several = runtime.clock(), len(attempts) > 1
    writes = [(attempt, outcome_of(attempt, error, now, together=several)) for attempt in attempts]
    return record_all(writes, now=now, using=runtime.using, keeper=runtime.watch.keeper())


def _call(attempts: Sequence[Attempt], runtime: Runtime) -> list[Outcome]:
    """
    Ask the guards of each, enter the handler with the others, and take each one's result. The guards of hundreds of tasks may
    take longer than a group may: then there is another look before the handler is entered.
    """
    now_running(*(attempt.task.id for attempt in attempts))
    refused = [(attempt, refusal(attempt)) for attempt in attempts]
    outcomes: list[Outcome] = [(attempt, write) for attempt, write in refused if write is not None]
    asked = [attempt for attempt, write in refused if write is None]
    if asked and is_time_up(attempts[0].seen_at):
        asked, ended = look_again(asked, runtime)
        outcomes += ended
    if not asked:
        return outcomes
    contexts = {attempt.entity: Context(**attempt.told()) for attempt in asked}
    instance = asked[0].definition.cls(now=asked[0].now, tasks=contexts)
    equip(instance, asked[0], runtime.using)
    handler = getattr(instance, asked[0].declared.method_name)
    with around(hooks().calls, asked):
        results = call_in_time(asked, partial(handler, list(contexts)), runtime)
        if results is None:
            return outcomes + [(attempt, returned(attempt, None)) for attempt in asked]
        return outcomes + _results(asked, results)


def _results(attempts: Sequence[Attempt], results: object) -> list[Outcome]:
    if not isinstance(results, Mapping):
        remedy = _("Return a mapping from entity to result or exception, or None.")
        raise InvalidInput("result", _("of a call for many is a %(type)s."), remedy, type=type(results).__name__)
    if strangers := set(results) - {attempt.entity for attempt in attempts}:
        problem, remedy = _("names %(count)d that the call was not for."), _("Use the entities given.")
        raise InvalidInput("result", problem, remedy, count=len(strangers))
    return [(attempt, _result(attempt, results.get(attempt.entity))) for attempt in attempts]


def _result(attempt: Attempt, result: object) -> Write | Exception:
    if isinstance(result, Exception):
        return result
    try:
        return returned(attempt, result)
    except InvalidInput as error:
        return error
