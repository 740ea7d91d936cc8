"""Pass the last look: those that must not run end at once; the time of the others begins."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from timeline.engine.attempting import Attempt, still_ours
from timeline.engine.executing import Outcome, Runtime, record_outcomes
from timeline.engine.looking import look as last_look
from timeline.lifecycle import Reason, Trigger
from timeline.models import ScheduledTask
from timeline.store.writing import Write


def pass_look(attempts: Sequence[Attempt], runtime: Runtime) -> tuple[list[Attempt], list[ScheduledTask]]:
    """Take the last look; give the attempts that may go on, and the tasks that have ended because they must not run."""
    with runtime.watch.looking():
        passed, outcomes = _look(attempts, runtime)
    return passed, record_outcomes(outcomes, runtime)


def look_again(attempts: Sequence[Attempt], runtime: Runtime) -> tuple[list[Attempt], list[Outcome]]:
    """
    Take the last look at what may have been called off meanwhile, in whatever transaction this is.

    Returns:
        The attempts that may go on; and how those end that must not, which is not recorded yet. In neither is what somebody
        else has ended.
    """
    ours = still_ours(attempts, using=runtime.using)
    return _look(ours, runtime) if ours else ([], [])


def _look(attempts: Sequence[Attempt], runtime: Runtime) -> tuple[list[Attempt], list[Outcome]]:
    refused = last_look(attempts, now=runtime.clock(), using=runtime.using)
    ended = [attempt for attempt in attempts if attempt.task.id in refused]
    outcomes = [(attempt, _outcome_of(attempt, refused[attempt.task.id])) for attempt in ended]
    return [attempt for attempt in attempts if attempt.task.id not in refused], outcomes


def pass_fresh_look(
    attempts: Sequence[Attempt], runtime: Runtime, *, late: bool
) -> tuple[list[Attempt], list[ScheduledTask]]:
    """
    Take the last look, and let their time begin now: however many they are, the look at them takes nothing of it.

    Args:
        attempts: Any number.
        runtime: Where they run.
        late: Whether they have waited since they were begun: somebody may have called them off.
    """
    if late:
        with runtime.watch.looking():
            attempts = still_ours(attempts, using=runtime.using)
    passed, refused = pass_look(attempts, runtime) if attempts else ([], [])
    now = monotonic()
    for attempt in passed:
        attempt.seen_at = now
    return passed, refused


def _outcome_of(attempt: Attempt, refused: Reason | Exception) -> Write | Exception:
    """What becomes of an attempt whose handler is not entered: it is called off, or it failed."""
    if isinstance(refused, Exception):
        return refused
    return Write(task=attempt.task, triggers=(Trigger.CANCEL,), reason=refused)
