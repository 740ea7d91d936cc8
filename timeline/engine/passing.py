"""Pass the last look: tasks that must not run end at once; for the others, the time of their group begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from time import monotonic

from timeline import reasons
from timeline.engine.attempting import Attempt, still_ours
from timeline.engine.executing import Outcome, Runtime, record_outcomes
from timeline.engine.failing import LOOKS_AGAIN_SOON, failed, rested
from timeline.engine.looking import look as last_look
from timeline.exceptions import Rest
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models import ScheduledTask
from timeline.store.queueing import Behind
from timeline.store.writing import Write


def pass_look(attempts: Sequence[Attempt], runtime: Runtime) -> tuple[list[Attempt], list[ScheduledTask]]:
    """Take the last look; give the attempts that may go on, and the tasks that have ended because they must not run."""
    with runtime.watch.looking():
        passed, outcomes = _look(attempts, runtime)
    return passed, record_outcomes(outcomes, runtime) if outcomes else []


def look_again(attempts: Sequence[Attempt], runtime: Runtime) -> tuple[list[Attempt], list[Outcome]]:
    """
    Take the last look at attempts that may have been cancelled meanwhile, inside or outside a transaction.

    Returns:
        The attempts that may go on; and the outcomes of those that must not, which are not recorded yet. Attempts that
        somebody else has ended are in neither.
    """
    ours = still_ours(attempts, using=runtime.using)
    return _look(ours, runtime) if ours else ([], [])


def _look(attempts: Sequence[Attempt], runtime: Runtime) -> tuple[list[Attempt], list[Outcome]]:
    now = runtime.clock()
    refused = last_look(attempts, now=now, using=runtime.using)
    ended = [attempt for attempt in attempts if attempt.task.id in refused]
    outcomes: list[Outcome] = [(attempt, _outcome_of(attempt, refused[attempt.task.id], now)) for attempt in ended]
    return [attempt for attempt in attempts if attempt.task.id not in refused], outcomes


def pass_fresh_look(
    attempts: Sequence[Attempt], runtime: Runtime, *, late: bool
) -> tuple[list[Attempt], list[ScheduledTask]]:
    """
    Take the last look, and let the time of the attempts begin now: however many they are, the look takes none of it.

    Args:
        attempts: Any number of attempts.
        runtime: Where they run.
        late: Whether they have waited since they were begun: then somebody may have cancelled them.
    """
    if late:
        with runtime.watch.looking():
            attempts = still_ours(attempts, using=runtime.using)
    passed, refused = pass_look(attempts, runtime) if attempts else ([], [])
    now = monotonic()
    for attempt in passed:
        attempt.seen_at = now
    return passed, refused


def _outcome_of(attempt: Attempt, refused: Reason | Behind | Rest | Exception, now: datetime) -> Write:
    """The outcome of an attempt whose handler is not entered: it is cancelled, rests, has failed, or is given back."""
    if isinstance(refused, Exception):
        return failed(attempt, refused, now)  # No handler raised this error, so it is no answer for a machine.
    if isinstance(refused, Behind):
        return replace(rested(attempt, reasons.BEHIND(run=refused.key)), rests=refused, entered=False)
    if isinstance(refused, Rest):
        return replace(rested(attempt, refused.reason, again=LOOKS_AGAIN_SOON), entered=False)
    if refused.code == ReasonCode.HOLD:  # Its due time stays; nothing is counted, and no budget touched.
        return Write(task=attempt.task, triggers=(Trigger.RETRY,), reason=refused, entered=False)
    return Write(task=attempt.task, triggers=(Trigger.CANCEL,), reason=refused, entered=False)
