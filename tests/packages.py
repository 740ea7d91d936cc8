"""The package as it is published, and environments made only of what is asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def run(*command: str | Path, **options) -> str:
    """Run a command to its end; gives what it printed, and fails with all it said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def copy_of_source(folder: Path) -> Path:
    """Copy what a build reads, so that nothing is built into the checkout."""
    source = folder / "source"
    for name in ("timeline", "docs"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    return source


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel, built once out of the sdist, which lies beside it; or the one that ``TIMELINE_WHEEL`` names."""
    if given := os.environ.get("TIMELINE_WHEEL"):
        return Path(given)
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", copy_of_source(folder))
    return next((folder / "dist").glob("*.whl"))


class Environment:
    """A virtual environment in which nothing is, not even pip."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, symlinks=True)

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def install(self, *wanted: str) -> None:
        """Install packages, as ``pip install`` in it would."""
        run(*PIP, "--python", self.python, "install", *wanted)

    def variables(self) -> dict[str, str]:
        """Variables of a process in it: those of this one, less what leads to packages and settings of the tests."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DJANGO_", "COV"))}
        return {**kept, "PATH": f"{self.folder / 'bin'}{os.pathsep}{kept['PATH']}", "VIRTUAL_ENV": str(self.folder)}
