"""An environment of its own for each peer, below ``.bench``; ours run in the project's."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.comparing.plan import FOLDER

ENVIRONMENTS: Final = FOLDER.parent / ".bench"
NEEDS: Final = {"oban": (3, 12)}  # Python; the others run on whatever the project runs on.
NEWEST: Final = 14


class Unavailable(Exception):
    """This peer cannot be measured here; the text says why."""


def python_of(name: str) -> str:
    """
    Give the interpreter that a peer runs with, after installing what it needs.

    Raises:
        Unavailable: if no Python is new enough, or it cannot be installed.
    """
    requirements = FOLDER / "peers" / "requirements" / f"{name}.txt"
    if not requirements.exists():
        return sys.executable
    base = interpreter(NEEDS.get(name, (3, 11)))
    mark = hashlib.sha256(requirements.read_bytes() + base.encode()).hexdigest()
    folder, python = ENVIRONMENTS / name, ENVIRONMENTS / name / "bin" / "python"
    marked = folder / "installed"
    if not (marked.exists() and marked.read_text() == mark):
        shutil.rmtree(folder, ignore_errors=True)
        _install(base, folder, python, requirements)
        marked.write_text(mark)
    return str(python)


def interpreter(least: tuple[int, int]) -> str:
    """
    Find a Python that is new enough: this one, one on the path, or one of pyenv's.

    Raises:
        Unavailable: if there is none.
    """
    if sys.version_info[:2] >= least:
        return getattr(sys, "_base_executable", sys.executable)
    for minor in range(least[1], NEWEST + 1):
        kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python"), reverse=True)
        for candidate in (shutil.which(f"python3.{minor}"), *map(str, kept)):
            if candidate and _runs(candidate):
                return candidate
    raise Unavailable(f"needs Python {least[0]}.{least[1]} or later, and there is none")


def _runs(python: str) -> bool:
    """A shim may be there with nothing behind it."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0  # noqa: S603


def _install(base: str, folder: Path, python: Path, requirements: Path) -> None:
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(requirements)]
    for command in ([base, "-m", "venv", str(folder)], [str(python), *pip]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise Unavailable(f"could not be installed: {done.stderr.strip().splitlines()[-1:]}")
