"""A mistake in a declaration is corrected in the host's file, and ``runserver`` has to see that it was."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from tests.followed import steps_of
from tests.pages import README, ROOT
from timeline import Timeline, after, task
from timeline.exceptions import DefinitionError

WITHIN = 30  # Seconds until the site has said something; it looks at its files each second.


class TestFilename:
    """Django watches the file that an error names as a SyntaxError does; else that of the last frame, which is ours."""

    def test_is_where_the_class_is_declared(self):
        with pytest.raises(DefinitionError) as refused:

            class Trial(Timeline):
                starts_on = ""

                @task(after(days=1))
                def remind(self) -> None: ...

        assert refused.value.filename == __file__

    def test_is_where_an_option_is_given(self):
        with pytest.raises(DefinitionError) as refused:
            after(day=1)

        assert refused.value.filename == __file__


@pytest.mark.processes
class TestRunserver:
    def test_comes_back_when_the_file_is_corrected(self, project):
        timelines = project / "accounts" / "timelines.py"
        right = timelines.read_text(encoding="utf-8")
        timelines.write_text(right.replace("unless=has_payment", "unles=has_payment"), encoding="utf-8")
        log = project / "log"
        with started(project, log):
            wait_for_words(log, "Did you mean 'unless'")
            assert "Starting development server" not in log.read_text(encoding="utf-8")
            time.sleep(2)  # Files are compared by their time, and it looks once before.

            timelines.write_text(right, encoding="utf-8")

            wait_for_words(log, "Starting development server")


@pytest.fixture
def project(tmp_path):
    """README's project, before its tables are made."""
    subprocess.run([sys.executable, "-m", "django", "startproject", "shop", "."], cwd=tmp_path, check=True)
    subprocess.run([sys.executable, "manage.py", "startapp", "accounts"], cwd=tmp_path, env=variables(), check=True)
    for step in steps_of(README.read_text(encoding="utf-8")):
        if step.file:
            with (tmp_path / step.file).open("a" if step.adds else "w", encoding="utf-8") as opened:
                opened.write(step.text)
    made = [sys.executable, "manage.py", "makemigrations", "accounts"]
    subprocess.run(made, cwd=tmp_path, env=variables(), check=True, capture_output=True)
    return tmp_path


def variables():
    """Of a shell in which nobody has said anything about another project."""
    kept = {name: value for name, value in os.environ.items() if not re.match("DJANGO_|TEST_DB", name)}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


@contextmanager
def started(folder, log):
    """The development server; it is stopped at the end, with the process that it starts."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "manage.py", "runserver", f"127.0.0.1:{port}"]
    with log.open("wb") as said:
        server = subprocess.Popen(
            command, cwd=folder, env=variables(), stdout=said, stderr=said, start_new_session=True
        )
    try:
        yield
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def wait_for_words(log, words):
    """Wait until the server has said so."""
    give_up = time.monotonic() + WITHIN
    while words not in (said := log.read_text(encoding="utf-8")):
        assert time.monotonic() < give_up, said
        time.sleep(0.1)
