"""
Pages that lead through a project, followed word for word: README and the lessons of the tutorial.

A line in bold above a block says where it goes: **`accounts/models.py`** is a file, with *at the end* it is added to one;
**Shell** is Python in the project; **Terminal** are commands. A block of text below commands is what they print, but for times
and numbers; what it leaves out is a line with ``…``. Where a page says *Wait 10 seconds*, story time moves on, and what is due
by then runs; no worker is started.

Each page is followed in one process of its own, in the folder of the project.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

# Commands that do not end by themselves; what a worker would do is done where the page says to wait.
RUN_ON = {"timeline_worker", "runserver"}
CUT = "…"  # A line of its own, in what a page shows.
BLOCK = re.compile(r"(.*?)^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PLACE = re.compile(r"^\*\*(.+)\*\*$", re.MULTILINE)


class Step(NamedTuple):
    """
    A block of a page.

    Args:
        place: What the line in bold says.
        language: Of the block.
        text: What is in it.
        wait: How many seconds the words before it say to wait.
        instead: What they say to write, and in place of what; empty: nothing.
    """

    place: str
    language: str
    text: str
    wait: int
    instead: tuple[str, str] | tuple[()]

    @property
    def file(self) -> str:
        """The file that it goes into; empty: none."""
        named = re.match(r"`([\w./]+)`", self.place)
        return named[1] if named else ""

    @property
    def adds(self) -> bool:
        """Whether it goes to the end of that file."""
        return "at the end" in self.place

    @property
    def commands(self) -> list[list[str]]:
        """The words of each of its commands."""
        lines = self.text.splitlines() if self.language == "console" else ()
        return [shlex.split(line.removeprefix("$ ")) for line in lines]


def steps_of(text: str) -> Iterator[Step]:
    """The blocks of a page, in order."""
    place = ""
    for before, language, block in BLOCK.findall(text):
        named = PLACE.findall(before)
        place = named[-1] if named else place
        wait = sum(map(int, re.findall(r"\bWait (\d+) seconds", before)))
        instead = re.search(r"write `([^`]+)` in place of `([^`]+)`", before)
        yield Step(place, language, block, wait, instead.groups() if instead else ())


def follow(page: Path, folder: Path) -> None:
    """Do what a page says in the folder of a project, and fail with what is not as it says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "TEST_DB"))}
    # As wide a terminal as pages show.
    variables = {**kept, "PYTHONPATH": str(Path(__file__).parents[1]), "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.followed", str(page)],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{page.name}\n{done.stdout}{done.stderr}"


class Followed:
    """The project of the present folder, while a page is followed in it."""

    def __init__(self, page: Path) -> None:
        self.text = page.read_text(encoding="utf-8")
        self.names: dict[str, object] = {}
        self.printed = ""
        self.file = Path()
        self.undone: list[tuple[Path, str]] = []
        self.until_the_end = ExitStack()
        self.clock: Any = None

    def follow(self) -> None:
        """Do one after the other."""
        for step in steps_of(self.text):
            if step.wait:
                self.wait(step.wait)
            if step.instead:
                self.change(*step.instead)
            if step.file:
                self.write(step)
            elif step.language == "console":
                self.printed = "".join(self.command(*words) for words in step.commands)
            elif step.language == "text":
                self.compare(step.text)
            else:
                self.shell(step.text)
        for file, text in self.undone:
            file.write_text(text, encoding="utf-8")

    def write(self, step: Step) -> None:
        """Write a file, or at its end."""
        self.file = Path(step.file)
        with self.file.open("a" if step.adds else "w", encoding="utf-8") as opened:
            opened.write(f"\n{step.text}" if step.adds else step.text)

    def change(self, new: str, old: str) -> None:
        """Write something else at the first place of the file that was written last, until the page is done."""
        text = self.file.read_text(encoding="utf-8")
        assert old in text
        self.file.write_text(text.replace(old, new, 1), encoding="utf-8")
        self.undone = [*self.undone, (self.file, text)]

    def command(self, *words: str) -> str:
        """Run a command; gives what it printed."""
        if words[0] in {"pip", "make"}:
            return ""
        if words[0] == "django-admin" or words[2] == "startapp":
            given = words[1:] if words[0] == "django-admin" else words[2:]
            subprocess.run([sys.executable, "-m", "django", *given], check=True)
            return ""
        if words[2] == "test":  # Modules of tests may have changed since they were imported.
            said = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, check=False)
            return said.stdout + said.stderr
        self.set_up()
        if words[2] == "runserver":
            self.open_pages()
        if words[2] in RUN_ON:
            return ""
        from django.core.management import execute_from_command_line

        given = [*words[1:], *(["--noinput"] if words[2] == "createsuperuser" else [])]
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed), suppress(SystemExit):
            execute_from_command_line(given)
        return printed.getvalue()

    def open_pages(self) -> None:
        """Open each page of the site that the page names, as somebody who may see all of them."""
        from django.conf import settings
        from django.contrib.auth import get_user_model
        from django.test import Client

        settings.ALLOWED_HOSTS = ["testserver"]
        client = Client()
        client.force_login(get_user_model().objects.filter(is_superuser=True).latest("pk"))
        for address in re.findall(r"http://127\.0\.0\.1:8000(/[\w/-]*)", self.text):
            assert client.get(address).status_code == 200, address

    def shell(self, text: str) -> None:
        """Run Python, with the names of what was run on the page before."""
        self.set_up()
        exec(compile(text, "shell", "exec"), self.names)  # noqa: S102 (of our own page)

    def wait(self, seconds: int) -> None:
        """Let what is due by then run."""
        self.set_up()
        from django.utils import timezone

        from timeline.testing import StoryClock

        if not self.clock:
            self.clock = self.until_the_end.enter_context(StoryClock(raises=False))
            timezone.now = lambda: self.clock.now  # As in a shell in which somebody has waited.
        for _second in range(seconds):
            self.clock.advance(seconds=1)

    def compare(self, shown: str) -> None:
        """See that just these lines were printed, but for times and numbers; a line ``…`` stands for any that are left out."""
        assert is_shown(plain(shown), plain(self.printed)), f"{shown}\nwas not printed, but:\n{self.printed}"

    def set_up(self) -> None:
        """Let Django know the project as it is by now."""
        import django
        from django.apps import apps

        if not apps.ready:
            sys.path.insert(0, "")
            os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
            os.environ["DJANGO_SUPERUSER_PASSWORD"] = "ada"  # noqa: S105 (of a site that is gone in a second)
            django.setup()


def is_shown(shown: list[str], printed: list[str]) -> bool:
    """Tell whether a page shows what was printed, without what it says that it leaves out."""
    parts = [r"(.*\n)*" if line == CUT else re.escape(f"{line}\n") for line in shown]
    return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in printed)) is not None


def plain(printed: str) -> list[str]:
    """Its lines without what is different each time."""
    return [re.sub(r"\d+", "0", " ".join(line.split())) for line in printed.splitlines() if line.strip()]


if __name__ == "__main__":
    Followed(Path(sys.argv[1])).follow()
