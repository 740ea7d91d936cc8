"""
Install what a command of the Makefile needs into ``.venv``: ``python install.py demo``, ``docs``, ``test`` or ``dev``.

Each is an extra of ``pyproject.toml``, in the versions of ``requirements.txt``. What is installed stays, until one of these two
files or the interpreter changes. Two of these commands at once wait for each other. Only what comes with Python is used.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
OLDEST = (3, 11)
# Each with those that have all of it.
SIZES = {"demo": ("demo", "test", "dev"), "docs": ("docs", "dev"), "test": ("test", "dev"), "dev": ("dev",)}


def main(size: str) -> None:
    """Install it, or say in one line why that cannot be done."""
    if sys.version_info < OLDEST:
        needed, this = (".".join(map(str, version)) for version in (OLDEST, sys.version_info[:3]))
        sys.exit(f"Python {needed} or later is needed; this is {this}. Name one: make PYTHON=python3.13 …")
    try:
        VENV.mkdir(exist_ok=True)
        lock = (VENV / ".lock").open("w")
    except OSError as error:
        sys.exit(f"Nothing can be installed into {VENV}: {error.strerror}.")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_there(size):
            print(f"Installing what `make {size}` needs into .venv.", flush=True)
            _install(size)


def _is_there(size: str) -> bool:
    marks = [_mark(known) for known in SIZES[size]]
    return PYTHON.exists() and any(mark.exists() and mark.read_text() == _wanted() for mark in marks)


def _mark(size: str) -> Path:
    return VENV / f".installed-{size}"


def _wanted() -> str:
    """What the installed has to be true to, in short."""
    files = (ROOT / "pyproject.toml", ROOT / "requirements.txt")
    return f"{sys.version} {hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()}"


def _install(size: str) -> None:
    pip = _pip()
    wanted = ("--constraint", "requirements.txt", "--editable", f".[{size}]")
    # What is not compiled now is when it is first imported; most of it never is.
    done = subprocess.run([*pip, "install", "--quiet", "--no-compile", *wanted], cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(
            "It could not be installed, as pip says above. It needs the package index, or a copy of it that pip knows."
        )
    _mark(size).write_text(_wanted())


def _pip() -> list[str]:
    """The command of a pip for the environment, which is made if it is not there. To copy pip into it takes seconds."""
    own = [sys.executable, "-m", "pip", "--python", str(PYTHON), "--disable-pip-version-check"]
    try:
        venv.create(VENV, symlinks=True)
        if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
            return own
        venv.create(VENV, symlinks=True, with_pip=True)
    except (OSError, subprocess.CalledProcessError):
        sys.exit("This Python cannot make a virtual environment with pip. On Debian: apt-get install python3-venv")
    return [str(PYTHON), "-m", "pip", "--disable-pip-version-check"]


if __name__ == "__main__":
    if sys.argv[1:] not in [[size] for size in SIZES]:
        sys.exit(f"Say which: {', '.join(SIZES)}.")
    main(sys.argv[1])
