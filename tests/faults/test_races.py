"""
Races, a thousand rounds each (on SQLite a hundred): two acts meet on the same row, and it is as if one came after the other.

Each says how often which came first; a race that one side nearly always wins is none. ``RACE_ROUNDS`` makes them longer.
"""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from django.db import connection

from tests.faults.races.claiming import CANCEL_AGAINST_CLAIM
from tests.faults.races.ending import CANCEL_AGAINST_ATOMIC_OUTCOME, CANCEL_AGAINST_PLAIN_OUTCOME
from tests.faults.races.exiting import EXIT_AGAINST_ATTEMPT, EXIT_AGAINST_OUTCOME, EXIT_AGAINST_START
from tests.faults.races.pruning import PRUNE_AGAINST_REDRIVE_AD_HOC, PRUNE_AGAINST_REDRIVE_IN_RUN
from tests.faults.races.releasing import RELEASE_AGAINST_EXITS
from tests.faults.races.rescuing import RESCUE_AGAINST_ATOMIC_OUTCOME, RESCUE_AGAINST_PLAIN_OUTCOME
from tests.faults.races.saving import SAVE_AGAINST_MOVE
from tests.faults.world import Clock, World, wipe
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = int(os.environ.get("RACE_ROUNDS", "1000" if connection.vendor == "postgresql" else "100"))
LEAST = 0.03  # Share of the rounds that each outcome must have.


@pytest.fixture(autouse=True)
def _world(settings):
    """No lease runs out but those that a race lets run out, however long its rounds take."""
    settings.TIMELINE = {**settings.TIMELINE, "LEASE": timedelta(hours=1)}
    wipe()
    clock = Clock()
    with only_timelines(World), clock.told():
        yield
    wipe()


@pytest.fixture
def go(capsys):
    """Let a race go, and say how often each outcome was: each must have been in a fair part of the rounds."""

    def gone(race):
        times = race.go(ROUNDS)
        with capsys.disabled():
            print(f"\n{race.name}: {dict(times)}")
        assert min(times[outcome] for outcome in race.outcomes) >= LEAST * ROUNDS, times

    return gone


class TestCancelAgainstClaim:
    def test_claims_what_is_there_and_cancels_all(self, go):
        go(CANCEL_AGAINST_CLAIM)


class TestCancelAgainstOutcome:
    @pytest.mark.parametrize(
        "race", [CANCEL_AGAINST_ATOMIC_OUTCOME, CANCEL_AGAINST_PLAIN_OUTCOME], ids=["atomic", "plain"]
    )
    def test_one_of_them_wins_and_the_other_is_told(self, go, race):
        go(race)


class TestPruneAgainstRedrive:
    def test_of_ad_hoc_tasks_takes_all_of_one_or_nothing(self, go):
        go(PRUNE_AGAINST_REDRIVE_AD_HOC)

    def test_of_a_run_takes_all_of_it_or_nothing(self, go):
        go(PRUNE_AGAINST_REDRIVE_IN_RUN)


class TestExitAgainstStart:
    def test_of_a_run_ends_it_or_comes_before_it(self, go):
        go(EXIT_AGAINST_START)

    def test_of_an_attempt_ends_it_or_lets_none_begin(self, go):
        go(EXIT_AGAINST_ATTEMPT)


class TestExitAgainstOutcome:
    def test_ends_what_runs_or_what_follows_from_it(self, go):
        go(EXIT_AGAINST_OUTCOME)


class TestSaveAgainstMove:
    def test_the_last_of_them_says_when(self, go):
        go(SAVE_AGAINST_MOVE)


class TestRescueAgainstOutcome:
    @pytest.mark.parametrize(
        "race", [RESCUE_AGAINST_ATOMIC_OUTCOME, RESCUE_AGAINST_PLAIN_OUTCOME], ids=["atomic", "plain"]
    )
    def test_lets_one_attempt_end(self, go, race):
        go(race)


@pytest.mark.only_postgresql
class TestReleaseAgainstExits:
    def test_nobody_waits_for_each_other_in_a_circle(self, go):
        go(RELEASE_AGAINST_EXITS)
