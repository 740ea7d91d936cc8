"""The pytest plugin, as a host's test suite meets it."""

from __future__ import annotations

import pytest
from django.conf import settings

TESTS = """
import pytest
from timeline.models import TimelineRun
from timeline.shortcuts import emit
from project.accounts.models import User
from datetime import UTC, datetime

@pytest.fixture
def user(db):
    day = datetime(2026, 1, 1, tzinfo=UTC)
    return User.objects.create(email="a@example.com", website="a", signed_up_at=day, trial_ends_at=day)

def test_as_set(user):
    emit("user.created", user)
    assert TimelineRun.objects.count() == EXPECTED

@pytest.mark.timeline
def test_marked(user):
    emit("user.created", user)
    assert TimelineRun.objects.count() == 1

def test_with_clock(user, clock):
    emit("user.created", user)
    assert TimelineRun.objects.count() == 1
"""
# Without what takes long to load or to make: none of it is asked about.
QUICKLY = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:schemathesis", "--no-migrations")


@pytest.mark.parametrize(("setting", "expected"), [("false", 0), ("true", 1)])
class TestTimelineAutostart:
    def test_decides_whether_runs_start_in_tests_that_do_not_ask(self, pytester, setting, expected):
        pytester.makepyfile(TESTS.replace("EXPECTED", str(expected)))
        pytester.makeini(
            f"[pytest]\nDJANGO_SETTINGS_MODULE = tests.settings\npythonpath = {settings.BASE_DIR}\n"
            f"timeline_autostart = {setting}\naddopts = --strict-markers\n"
        )

        result = pytester.runpytest_subprocess(*QUICKLY)

        result.assert_outcomes(passed=3)
