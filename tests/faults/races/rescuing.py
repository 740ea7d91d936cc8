"""A rescue and the next attempt against the outcome of the attempt that is given up: its worker was slow, and not dead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from tests.faults.races.duels import First, Results, duel
from tests.faults.races.race import LATER, Race, begun, due, nobody_failed, placed
from tests.faults.world import check
from timeline.dispatch.rescue import rescue
from timeline.engine.groups import Attempt, run_begun
from timeline.models import ScheduledTask
from timeline.timing import EARLIEST, LATEST

end = partial(run_begun, clock=lambda: LATER, using="default")


def rescue_against_outcome(key: str, rounds: int) -> Iterable[str]:
    """The attempt ends first, or it is given up and changes nothing any more: the next one ends as if there had been none."""
    placed(rounds)
    attempts = begun(due(key))
    ScheduledTask.objects.filter(pk__in=[attempt.task.pk for attempt in attempts]).update(lease_expires_at=LATEST)
    half = rounds // 2

    # In one half they meet where the attempt is given up, in the other where the next one has just begun.
    results = meet(attempts[:half], lambda again, _ran: bool(again.did))
    results += meet(attempts[half:], lambda again, ran: again.over_at < ran.over_at)

    nobody_failed(results)
    assert [bool(again) for again, _ran in results] == [not ran for _again, ran in results]
    second = [attempt for again, _ran in results for attempt in again]
    assert len([task for attempt in second for task in end([attempt])]) == len(second)
    check()
    tasks = ScheduledTask.objects.filter(task_key=f"world.{key}")
    assert set(tasks.values_list("state", flat=True)) == {"completed"}
    return [f"attempt {attempt}" for attempt in tasks.values_list("attempt", flat=True)]


def meet(attempts: Sequence[Attempt], left_first: First) -> Results:
    """Let both acts meet at each attempt."""
    return duel(begin_again, lambda attempt: end([attempt]), attempts, lanes=1, make=silent, left_first=left_first)


def silent(attempt: Attempt) -> Attempt:
    """Its lease has run out."""
    ScheduledTask.objects.filter(pk=attempt.task.pk).update(lease_expires_at=EARLIEST)
    return attempt


def begin_again(attempt: Attempt) -> list[Attempt]:
    """Act: give up the attempt, and begin the next one."""
    rescue(now=LATER, using="default")
    return begun([attempt.task])


_OUTCOMES: Final = ("attempt 1", "attempt 2")
RESCUE_AGAINST_ATOMIC_OUTCOME: Final = Race(
    "a rescue against an atomic outcome", partial(rescue_against_outcome, "ship"), _OUTCOMES
)
RESCUE_AGAINST_PLAIN_OUTCOME: Final = Race(
    "a rescue against a plain outcome", partial(rescue_against_outcome, "call"), _OUTCOMES
)
