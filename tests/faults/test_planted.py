"""The checker finds each fault planted in a copy of the package, and nothing in the package itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.faults.check.judging import counted, judge, read_history
from tests.faults.harness.roles import ROOT, surroundings
from tests.faults.planted.patches import FAULTS

pytestmark = [pytest.mark.only_postgresql, pytest.mark.processes]

STEPS = "simple run retried cancelled frozen killed living ahead redriven resent narrow to_the_end killed_holder"
LEASE = 3.0  # Seconds. The course waits a little longer for one to run out.
BUSY = 1.0  # Seconds that a busy machine may keep a process waiting.


@pytest.fixture
def go(site, redis_server):
    """Go a part of the course with the package, or with a copy of it; give the history."""

    def run(steps, package=None):
        environment = {
            **surroundings(),
            **site.environment(TEST_LEASE=str(LEASE), TEST_SILENCE=str(LEASE), TEST_BROKER_URL=redis_server.url()),
        }
        environment["PYTHONPATH"] = os.pathsep.join([str(package or ROOT), str(ROOT)])
        command = [sys.executable, "-m", "tests.faults.planted.course", *steps.split()]
        done = subprocess.run(
            command, env=environment, cwd=package or ROOT, capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[-1].startswith(str(package or ROOT)), done.stdout
        return read_history(site.url, site.folder)

    return run


class TestCourse:
    def test_shows_the_checker_all_there_is_to_see_and_nothing_wrong(self, go):
        history = go(STEPS)

        assert judge(history, slack=BUSY) == []
        seen = counted(history)
        assert seen["tasks"] == 44
        assert seen["handlers entered"] == seen["seen from outside at entry"] == 50
        assert (seen["runs"], seen["attempts lost"], seen["messages"]) == (1, 3, 2)


class TestPlantedFault:
    def test_are_twelve_at_least(self):
        assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 12

    @pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
    def test_is_found(self, fault, go, tmp_path):
        """By one of the rules that are about it."""
        package = tmp_path / "package"
        fault.plant(package)

        violations = judge(go(fault.steps, package), slack=BUSY)

        assert {violation.rule for violation in violations} & fault.rules, violations
