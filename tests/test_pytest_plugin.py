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


NIGHTLY = """
from timeline import Timeline, after, daily, task

class Sweep(Timeline):
    starts_on = daily("02:00")

    @task(after())
    def sweep(self):
        raise RuntimeError("not in a test")
"""
ABOUT_A_USER = """
import pytest
from datetime import UTC, datetime, timedelta
from project.accounts.models import User
from project.accounts.timelines import Trial
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import emit
from timeline.testing import StoryClock, expect

@pytest.fixture
def user(db):
    now = datetime.now(UTC)
    return User.objects.create(email="a@example.com", website="a", signed_up_at=now, trial_ends_at=now + timedelta(days=30))

@pytest.fixture
def signed_up(user, clock):
    emit("user.created", user)
    return user

def test_leaves_out_what_the_clock_starts_in_another_app(signed_up, clock):
    clock.advance(weeks=6)
    assert {run.timeline for run in TimelineRun.objects.all()} == {"trial"}

def test_shows_what_was_left_out(signed_up, clock):
    clock.advance(weeks=6)
    expect(signed_up).open("remind")

def test_shows_it_in_the_report(signed_up, clock):
    clock.advance(weeks=6)
    assert not ScheduledTask.objects.exists()

@pytest.mark.timeline(only=["nightly.sweep", Trial])
def test_runs_what_it_names(signed_up, clock):
    with pytest.raises(RuntimeError):
        clock.advance(weeks=6)
    with clock.failing() as errors:
        clock.advance(days=3)
    assert len(errors) > 2

def test_runs_what_its_clock_names(signed_up):
    with StoryClock(only=["sweep"]) as clock, pytest.raises(RuntimeError):
        clock.advance(days=1)

@pytest.mark.timeline("sweep")
def test_leaves_out_what_it_does_not_name(signed_up, clock):
    with clock.failing():
        clock.advance(weeks=6)
    assert not ScheduledTask.objects.filter(task_key__startswith="trial.", attempt__gt=0).exists()
    assert any(line.startswith("Left out: trial; the test names other timelines.") for line in clock.told())

@pytest.mark.timeline("nightly.sweeep")
def test_is_told_of_a_name_that_is_none(clock):
    with pytest.raises(LookupError, match="Did you mean 'nightly.sweep'"):
        clock.run_due()

def test_that_is_about_no_app_runs_all(clock):
    with pytest.raises(RuntimeError):
        clock.advance(days=1)

@pytest.mark.timeline(rasies=False)
def test_with_a_mark_that_says_nothing(clock): ...
"""
ABOUT_THE_NIGHT = """
from django.test import TestCase
from project.accounts.models import User
from timeline.shortcuts import emit
from timeline.testing import StoryClock
from datetime import UTC, datetime, timedelta

class SweepTests(TestCase):
    def test_runs_what_the_clock_starts_in_its_own_app(self):
        with StoryClock() as clock:
            user = User.objects.create(
                email="a@example.com", website="a", signed_up_at=clock.now, trial_ends_at=clock.now + timedelta(days=30)
            )
            emit("user.created", user)
            with self.assertRaises(RuntimeError):
                clock.advance(days=1)
"""
HOST = """
from tests.settings import *
INSTALLED_APPS = [*(name for name in INSTALLED_APPS if name != "project.billing"), "nightly"]
"""


class TestClock:
    @pytest.fixture
    def host(self, pytester):
        """A project with a second app, whose only timeline starts by the clock."""
        pytester.mkpydir("nightly").joinpath("timelines.py").write_text(NIGHTLY)
        pytester.makepyfile(host=HOST)
        pytester.makeini(f"[pytest]\npythonpath = . {settings.BASE_DIR}\naddopts = --strict-markers\n")
        return pytester

    def test_runs_what_the_test_names_or_is_about(self, host):
        host.makepyfile(test_user=ABOUT_A_USER)
        host.path.joinpath("nightly", "test_night.py").write_text(ABOUT_THE_NIGHT)

        result = host.runpytest_subprocess(*QUICKLY, "--ds=host")

        result.assert_outcomes(passed=7, failed=2, errors=1)
        result.stdout.fnmatch_lines_random(
            [
                "*The mark timeline takes no rasies=. Did you mean 'raises'?",
                "E*Left out: sweep; it starts by the clock, and the test is about accounts. To run it, name it: *",
                "*Captured timeline call*",
                "Tasks run, by timeline: trial 4.",
            ]
        )

    def test_is_as_it_was_in_the_runner_of_django(self, host):
        host.path.joinpath("nightly", "test_night.py").write_text(ABOUT_THE_NIGHT)
        host.makepyfile(
            run=f"import sys; sys.path[:0] = ['.', {str(settings.BASE_DIR)!r}]\n"
            "from django.core.management import execute_from_command_line\n"
            "execute_from_command_line(['manage.py', 'test', 'nightly', '--settings', 'host'])\n"
        )

        result = host.runpython("run.py")

        assert result.ret == 0
