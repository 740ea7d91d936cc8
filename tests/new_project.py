"""
README, followed to the letter: in an empty folder, in an environment made only of what it says to install.

Commands, files and examples are README's own, in its order, and so are those of the page about Celery. How a block is read is
said in ``tests/followed.py``.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.followed import Step, steps_of
from tests.packages import Environment, run
from tests.pages import README

# Of the commands, those that do not end by themselves.
RUN_ON = ("timeline_worker", "timeline_poll", "worker", "beat")

SIGN_UP = """
from datetime import timedelta
from django.utils import timezone
from accounts.models import User
from timeline.shortcuts import emit

user = User.objects.create(username="mary", trial_ends_at=timezone.now() + timedelta(seconds=20))
emit("trial.started", user)
print(user.pk)
"""


def steps(heading: str, page: Path = README) -> list[Step]:
    """The blocks of a page below a heading, up to the next heading of any level."""
    text = page.read_text(encoding="utf-8")
    return list(steps_of(re.search(rf"^#+ {heading}\n(.*?)^#+ ", text, re.DOTALL | re.MULTILINE).group(1)))


class Project:
    """
    A new project in a folder of its own.

    Args:
        folder: An empty one.
        wheel: In place of the path of a checkout that README installs.
    """

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.environment = Environment(folder / "environment")
        self.variables = self.environment.variables()
        self.started: list[subprocess.Popen[bytes]] = []
        self._wheel = wheel

    def follow(self, step: Step) -> str:
        """Do what README says; gives what was printed."""
        if step.language == "console":
            return "".join(self.run(*command) for command in step.commands)
        if step.file:
            write = self.add if step.adds else self.write
            write(step.file, step.text)
            return ""
        raise ValueError(f"README does not say where this goes: {step.text}")

    def run(self, *command: str) -> str:
        """Run a command of README's, or start it where it does not end by itself; gives what it printed."""
        if command[:2] == ("pip", "install"):
            self.environment.install(*(word.replace("/path/to/checkout", str(self._wheel)) for word in command[2:]))
            return ""
        if "runserver" in command:
            return ""  # It takes a port that others may have; tests/followed.py opens its pages.
        if "createsuperuser" in command:
            variables = {**self.variables, "DJANGO_SUPERUSER_PASSWORD": "ada"}
            return run(*command, "--noinput", cwd=self.folder, env=variables)
        if set(RUN_ON) & set(command):
            self.start(*command)
            return ""
        return run(*command, cwd=self.folder, env=self.variables)

    def shell(self, text: str) -> str:
        """Run Python in it; gives what it printed."""
        return self.run("python", "manage.py", "shell", "--verbosity", "0", "-c", text).strip()

    def start(self, *command: str) -> None:
        """Start something that does not end by itself."""
        with self.log(len(self.started)).open("wb") as log:
            process = subprocess.Popen(command, cwd=self.folder, env=self.variables, stdout=log, stderr=log)
        self.started.append(process)

    def log(self, number: int) -> Path:
        """What the process that was started as such has printed."""
        return self.folder / f"{number}.log"

    def stop(self) -> list[int]:
        """Stop what was started, and kill what has not ended after two minutes; gives how each ended."""
        for process in self.started:
            process.terminate()
        return [_wait_or_kill(process) for process in self.started]

    def wait_until_completed(self, key: str, *task_keys: str) -> list[str]:
        """Wait until a user's tasks have completed, for two minutes at most; gives all that have."""
        give_up = time.monotonic() + 120
        while not set(task_keys) <= set(shown := self._completed(key)) and time.monotonic() < give_up:
            time.sleep(0.2)
        return shown

    def write(self, file: str, text: str) -> None:
        """Write one of its files."""
        (self.folder / file).write_text(text, encoding="utf-8")

    def add(self, file: str, text: str) -> None:
        """Write at the end of one of its files."""
        with (self.folder / file).open("a", encoding="utf-8") as opened:
            opened.write(f"\n{text}")

    def _completed(self, key: str) -> list[str]:
        lines = self.run("python", "manage.py", "timeline_explain", "accounts.user", key).splitlines()
        return [line.split()[3] for line in lines if line.startswith("  ✓")]


def _wait_or_kill(process: subprocess.Popen[bytes]) -> int:
    with suppress(subprocess.TimeoutExpired):
        return process.wait(120)
    process.kill()
    return process.wait()


@pytest.fixture
def new_project(wheel, tmp_path) -> Iterator[Project]:
    """A new project; what it started is killed at the end."""
    made = Project(tmp_path, wheel)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.wait()
    for number in range(len(made.started)):
        print(made.log(number).read_text())  # Shown where the test failed.
