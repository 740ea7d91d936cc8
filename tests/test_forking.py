"""What is forked for the tests is as what is started: environment, settings, streams, group, signals and status."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
from django.db import connection

from tests import forking
from tests.databases import url_of
from tests.forking import Forked, start
from tests.processes import DEADLINE, wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

SAY = (
    "import os; from django.conf import settings; print(os.environ['TEST_FOLDER'], settings.TIMELINE['LEASE'].seconds)"
)
WAIT = "import sys, time; print('here', flush=True); time.sleep(600)"


@pytest.fixture
def shell(tmp_path):
    """Run Python in a process: ``shell("name", "print(1)")``; what it prints is in ``name.log``."""
    started = []

    def run(name, code, **more):
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.process_settings",
            "TEST_DATABASE_URL": url_of(connection.settings_dict),
            "TEST_FOLDER": name,
            **more,
        }
        with (tmp_path / f"{name}.log").open("wb") as log:
            command = ("manage", "shell", "--verbosity", "0", "-c", code)
            started.append(start(*command, environment=environment, log=log))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


class TestForked:
    def test_has_an_environment_settings_and_a_database_of_its_own(self, shell, tmp_path):
        ask = "; from django.contrib.contenttypes.models import ContentType as C; print(C.objects.count() > 0)"

        first = shell("one", SAY + ask, TEST_LEASE="7")
        second = shell("two", SAY + ask, TEST_LEASE="8")
        third = shell("three", SAY, TEST_LEASE="9", TEST_DATABASE_URL="sqlite:////nowhere/at/all.sqlite3")

        assert isinstance(first, Forked)
        assert [process.wait(DEADLINE) for process in (first, second, third)] == [0, 0, 0]
        told = [(tmp_path / f"{name}.log").read_text().split() for name in ("one", "two", "three")]
        assert told == [["one", "7", "True"], ["two", "8", "True"], ["three", "9"]]

    def test_is_started_as_people_do_where_other_settings_differ(self, shell, tmp_path):
        shell("plain", "from django.conf import settings; print(settings.LOGGING)").wait(DEADLINE)

        silent = shell("silent", "from django.conf import settings; print(settings.LOGGING)", TEST_LOGGING="none")

        assert silent.wait(DEADLINE) == 0
        assert (tmp_path / "silent.log").read_text() == "{}\n"
        assert (tmp_path / "plain.log").read_text() != "{}\n"

    def test_ends_with_a_status_or_by_a_signal(self, shell, tmp_path):
        ended = shell("ended", "import sys; sys.exit(3)")
        failed = shell("failed", "print(1 / 0)")
        killed = shell("killed", WAIT)
        wait_for(lambda: "here" in (tmp_path / "killed.log").read_text(), "its word")

        with pytest.raises(subprocess.TimeoutExpired):
            killed.wait(0.01)
        assert killed.poll() is None
        assert os.getpgid(killed.pid) == os.getsid(killed.pid) == killed.pid
        os.killpg(killed.pid, signal.SIGKILL)

        assert [process.wait(DEADLINE) for process in (ended, failed, killed)] == [3, 1, -signal.SIGKILL]
        assert killed.poll() == -signal.SIGKILL
        assert "ZeroDivisionError" in (tmp_path / "failed.log").read_text()


class TestStart:
    @pytest.mark.parametrize("more", [{"FAKETIME": "+1"}, {"COVERAGE_RUN": "1"}, {"PYTHONHASHSEED": "1"}])
    def test_forks_nothing_that_an_interpreter_is_told_at_its_start(self, shell, more):
        assert isinstance(shell("told", "", **more), subprocess.Popen)


class TestNursery:
    def test_ends_when_nobody_can_ask_it_any_more(self, shell):
        shell("one", "").wait(DEADLINE)
        nursery = next(one for one in forking._nurseries.values() if one._kind == "manage")
        process = nursery._process

        nursery.end()
        del forking._nurseries[next(key for key, one in forking._nurseries.items() if one is nursery)]

        assert process.returncode == 0
        assert shell("two", "import sys; sys.exit(4)").wait(DEADLINE) == 4
