"""A cancel against the outcome of a handler that runs: one that shares its transaction with it, or one that has none."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from tests.faults.races.duels import duel
from tests.faults.races.race import LATER, Race, begun, cancel_one, due, placed
from tests.faults.world import check
from timeline.engine.groups import run_begun
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import State
from timeline.models import ScheduledTask


def cancel_against_outcome(key: str, rounds: int) -> Iterable[str]:
    """One of them wins, and the other is told."""
    placed(rounds)
    attempts = begun(due(key))

    results = duel(
        lambda attempt: cancel_one(attempt.task),
        lambda attempt: run_begun([attempt], clock=lambda: LATER, using="default"),
        attempts,
        left_first=lambda cancelled, _ran: isinstance(cancelled.did, list),
    )

    check()
    outcomes = []
    rows = ScheduledTask.objects.in_bulk([attempt.task.pk for attempt in attempts])
    for attempt, (cancelled, ran) in zip(attempts, results, strict=True):
        state = rows[attempt.task.pk].state
        assert isinstance(cancelled, TransitionNotAllowed if state == State.COMPLETED else list), cancelled
        assert isinstance(ran, list), ran
        assert bool(ran) is (state == State.COMPLETED)
        outcomes.append(state)
    return outcomes


_OUTCOMES: Final = ("completed", "cancelled")
CANCEL_AGAINST_ATOMIC_OUTCOME: Final = Race(
    "a cancel against an atomic outcome", partial(cancel_against_outcome, "ship"), _OUTCOMES
)
CANCEL_AGAINST_PLAIN_OUTCOME: Final = Race(
    "a cancel against a plain outcome", partial(cancel_against_outcome, "call"), _OUTCOMES
)
