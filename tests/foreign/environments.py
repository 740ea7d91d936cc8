"""
An environment of its own for each host, with the versions that are pinned, and our wheel in it.

It is kept below ``.foreign`` and made anew when its pins change. ``requirements.txt`` of a host says what is wanted,
``constraints.txt`` which version of everything that comes with it: ``pip freeze`` of the environment.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

from benchmarks.comparing.environments import interpreter

FOLDER: Final = Path(__file__).parent
ROOT: Final = FOLDER.parent.parent
KEPT: Final = ROOT / ".foreign"
PYTHON: Final = {
    "django": (3, 12),
    "ojs": (3, 12),
    "wagtail": (3, 12),
    "pretix": (3, 11),
}  # At least; Django 6.1 wants 3.12.
OURS: Final = "django-entity-timeline"
PIP: Final = ("-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input")


class NotInstalled(Exception):
    """Something cannot be installed; the text is what pip said."""


def environment_of(host: str) -> tuple[Path, bool]:
    """
    Give the interpreter of a host's environment, and whether it was made just now.

    Raises:
        NotInstalled: if what is pinned cannot be installed.
        Unavailable: if no Python is new enough.
    """
    base = interpreter(PYTHON[host])
    wanted = [FOLDER / host / name for name in ("requirements.txt", "constraints.txt")]
    mark = hashlib.sha256(b"".join(file.read_bytes() for file in wanted) + base.encode()).hexdigest()
    folder = KEPT / host
    python, marked = folder / "bin" / "python", folder / "mark"
    if marked.exists() and marked.read_text() == mark:
        return python, False
    shutil.rmtree(folder, ignore_errors=True)
    _run(base, "-m", "venv", str(folder))
    _run(python, *PIP, "install", "-r", str(wanted[0]), "-c", str(wanted[1]))
    (folder / "pins.txt").write_text("\n".join(frozen(python)) + "\n")
    marked.write_text(mark)
    return python, True


def build_wheel(folder: Path) -> Path:
    """Build our wheel from the working tree as it is, in a copy, so that nothing built before gets into it."""
    source = folder / "source"
    shutil.copytree(ROOT / "timeline", source / "timeline", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    _run(shutil.which("python3") or "python3", *PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    return next(folder.glob("*.whl"))


def install(host: str, python: Path, wheel: Path, *extras: str) -> list[str]:
    """
    Install our wheel beside the host, and leave alone whatever the host brought.

    Args:
        extras: Of our package.

    Returns:
        What came with it, as ``name==version``.

    Raises:
        NotInstalled: if it cannot be had with the versions that the host has.
    """
    pins = python.parent.parent / "pins.txt"
    _run(python, *PIP, "uninstall", "--yes", OURS)
    _run(
        python,
        *PIP,
        "install",
        "-c",
        str(pins),
        "-c",
        str(FOLDER / host / "constraints.txt"),
        f"{wheel}[{','.join(extras)}]" if extras else str(wheel),
    )
    brought, there = pins.read_text().split(), frozen(python)
    if changed := sorted(set(brought) - set(there)):
        raise NotInstalled(f"Installing ours changed what the host brought: {', '.join(changed)}.")
    return sorted(set(there) - set(brought))


def frozen(python: Path) -> list[str]:
    """What is installed, as ``name==version``; not ours."""
    lines = _run(python, *PIP, "freeze", "--exclude", OURS).split("\n")
    return [line for line in lines if line]


def _run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(f"{' '.join(map(str, command[1:]))}:\n{done.stderr.strip()[-2000:]}")
    return done.stdout.strip()
