"""Chaos in small: a thousand tasks of every kind, one fault a second, and nothing that the checker objects to."""

from __future__ import annotations

import os

import pytest

from tests.faults.chaos import seeds
from tests.faults.chaos.fleet import SETTINGS, SILENT
from tests.faults.chaos.running import Outcome, run_chaos
from tests.faults.check.history import Violation
from timeline.conf import Settings

pytestmark = [pytest.mark.only_postgresql, pytest.mark.processes]

SEED = int(os.environ.get("CHAOS_SEED", "17"))


class TestChaos:
    @pytest.mark.needs("faketime")
    @pytest.mark.parametrize("over", ["embedded", pytest.param("celery", marks=pytest.mark.needs("redis-server"))])
    def test_loses_doubles_and_hastens_nothing(self, over, postgres):
        outcome = run_chaos(tasks=1000, seconds=25, seed=SEED, over=over, postgres=postgres)

        assert outcome.violations == [], outcome.folder
        assert outcome.tasks >= 1000
        assert set(outcome.visits) == {"done", "lost"}
        assert sum(outcome.visits.values()) >= 250
        assert sum(outcome.faults.values()) >= 10


class TestSettings:
    def test_are_by_default_those_of_the_product(self):
        ours, default = Settings(), SETTINGS["default"]

        assert float(default["TEST_LEASE"]) == ours.LEASE.total_seconds()
        assert float(default["TEST_SILENCE"]) == ours.SILENCE.total_seconds() == SILENT["default"]


class TestSeeds:
    @pytest.fixture(autouse=True)
    def _kept(self, monkeypatch, tmp_path):
        monkeypatch.setattr(seeds, "KEPT", tmp_path / "kept")

    def outcome(self, *violations):
        return Outcome(
            5, "celery", "tuned", 990, {"done": 9}, {"kill": 3, "cut": 2}, 4.2, [1.0, 3.0], list(violations), "/nowhere"
        )

    def test_are_left_out_once_they_have_passed(self):
        assert not seeds.passed(5, 1000)

        seeds.keep(self.outcome(), 1000)

        assert seeds.passed(5, 1000)
        assert not seeds.passed(5, 10_000)

    def test_are_run_again_if_something_was_wrong(self):
        seeds.keep(self.outcome(Violation("lost", "a task", "it is gone")), 1000)

        assert not seeds.passed(5, 1000)

    def test_are_written_as_people_do(self):
        assert seeds.numbers("1-3,9") == [1, 2, 3, 9]
        assert [seeds.over_of(seed) for seed in (1, 2)] == ["celery", "embedded"]

    def test_are_summed_up(self):
        one = {
            "settings": "tuned",
            "tasks": 10,
            "faults": {"kill": 3, "cut": 2},
            "recovery": [1.0, 3.0],
            "violations": [],
        }

        line = seeds.summary([one, {**one, "recovery": []}])

        assert line == "2 seeds: 20 tasks, 10 faults, recovery tuned: p50 2.0 s, max 3.0 s, of 2, 0 violations"
