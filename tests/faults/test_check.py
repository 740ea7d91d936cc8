"""The checker: apart from the package, on both databases, and from the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest

from tests.faults.app import journal
from tests.faults.check.judging import judge, read_history
from tests.faults.harness.roles import ROOT
from tests.faults.harness.site import manage

pytestmark = pytest.mark.processes


def python(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def of_a_course(folder):
    """What a course is told that has its database and its journals in a folder."""
    return {
        "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
        "TEST_DATABASE_URL": f"sqlite:///{folder}/course.sqlite3",
        "TEST_FOLDER": str(folder),
    }


@pytest.fixture(scope="module")
def migrated(tmp_path_factory):
    """A folder with a migrated database."""
    folder = tmp_path_factory.mktemp("migrated")
    manage(of_a_course(folder), "migrate", "--run-syncdb", "--verbosity", "0")
    return folder


@pytest.fixture
def course(migrated, tmp_path):
    """Go a part of the course on SQLite; gives the URL of its database."""

    def go(*steps):
        environment = of_a_course(tmp_path)
        for file in migrated.glob("course.sqlite3*"):
            shutil.copy(file, tmp_path)
        gone = python("-m", "tests.faults.planted.course", *steps, **environment)
        assert gone.returncode == 0, gone.stderr
        return environment["TEST_DATABASE_URL"]

    return go


class TestChecker:
    def test_imports_neither_the_package_nor_django(self):
        listed = python("-c", "import sys, tests.faults.check.__main__; print(*sys.modules)")

        roots = {name.partition(".")[0] for name in listed.stdout.split()}
        assert "tests" in roots
        assert not roots & {"timeline", "django", "project"}

    def test_says_what_it_counted_and_what_is_wrong(self, course, tmp_path):
        """From the command line: nothing wrong in what was run; and a row that nobody accounts for, once it is made."""
        url = course("simple", "run", "redriven")
        command = ["-m", "tests.faults.check", "--database", url, "--journal", str(tmp_path)]

        good = python(*command)
        (tmp_path / "more.jsonl").write_text(
            '{"what": "asked", "at": 1, "call": "x", "verb": "schedule", "tasks": [], "entity": "", "due_at": null}\n'
            '{"what": "done", "at": 2, "call": "x", "tasks": ["00000000-0000-0000-0000-000000000000"]}\n'
            '{"what": "enter", "at": '
        )
        bad = python(*command)

        assert good.returncode == 0, good.stdout
        assert good.stdout.splitlines()[:2] == ["tasks: 24", "ended as: {'completed': 23, 'cancelled': 1}"]
        assert good.stdout.splitlines()[-1] == "0 violations"
        assert bad.returncode == 1
        assert bad.stdout.splitlines()[-2:] == [
            "lost: 00000000-0000-0000-0000-000000000000: it was scheduled and confirmed, and there is no such row",
            "1 violations",
        ]

    def test_reads_sqlite(self, course, tmp_path):
        history = read_history(course("simple"), tmp_path)

        assert judge(history) == []
        assert {len(task_id) for task_id in history.tasks} == {36}
        assert {entry.to_state for entry in history.entries} >= {"active", "completed"}


class TestJournal:
    def test_of_a_process_is_one_file_though_two_threads_open_it(self, tmp_path, monkeypatch):
        """What one of them enters, another may leave."""
        meeting = threading.Barrier(2, timeout=5)

        def open_together(*arguments):
            with suppress(threading.BrokenBarrierError):
                meeting.wait()
            return os.open(*arguments)

        monkeypatch.setattr(journal, "os", SimpleNamespace(**{**vars(os), "open": open_together}))
        monkeypatch.setattr(journal, "_files", {})
        monkeypatch.setenv("TEST_FOLDER", str(tmp_path))
        threads = [threading.Thread(target=journal.write, args=[what]) for what in ("enter", "leave")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        written = [path.read_text() for path in tmp_path.glob("*.jsonl") if path.stat().st_size]
        assert [text.count("\n") for text in written] == [2]
        os.close(next(iter(journal._files.values())))
