"""The checker finds each fault planted in a copy of the package, and nothing in the package itself."""

from __future__ import annotations

import pytest

from tests.faults.check.judging import counted, judge, read_history
from tests.faults.harness.roles import ROOT, surroundings
from tests.faults.planted.patches import FAULTS
from tests.forking import start
from tests.processes import kill

pytestmark = [pytest.mark.only_postgresql, pytest.mark.processes]

STEPS = "simple run retried cancelled frozen killed living ahead redriven resent narrow to_the_end killed_holder"
LEASE = 3.0  # Seconds. The course waits a little longer for one to run out.
BUSY = 1.0  # Seconds that a busy machine may keep a process waiting.


@pytest.fixture
def go(site, redis_server, tmp_path):
    """Go a part of the course with the package, or with a copy of it; give the history."""

    def run(steps, package=None):
        environment = {
            **surroundings(),
            **site.environment(TEST_LEASE=str(LEASE), TEST_SILENCE=str(LEASE), TEST_BROKER_URL=redis_server.url()),
            **({"FAULTS_PACKAGE": str(package)} if package else {}),
        }
        with (tmp_path / "course.log").open("wb") as log:
            process = start("tests.faults.planted.course", *steps.split(), environment=environment, log=log)
        try:
            ended = process.wait(900)
        finally:
            kill(process)
        said = (tmp_path / "course.log").read_text()
        assert ended == 0, said
        assert f"The package is {package or ROOT}/timeline/" in said
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
