"""
What is to be seen in a host, step by step. Runs in the host's own environment and settings.

``python -m seeing story.rows story.exits`` runs the steps of these modules in the order in which they stand there, prints a
line for each, and ends with status 1 if one of them failed.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import django

Step = Callable[[], str | None]
steps: list[tuple[str, Step]] = []


def seen(what: str) -> Callable[[Step], Step]:
    """
    Make a function a step.

    Args:
        what: What holds if it raises nothing. Figures that it returns are printed behind that.
    """

    def note(step: Step) -> Step:
        steps.append((what, step))
        return step

    return note


def folder() -> Path:
    """Where the steps of one run leave each other files."""
    return Path(os.environ["FOREIGN_FOLDER"])


def eventually(holds: Callable[[], bool], *, seconds: float = 120) -> None:
    """
    Wait until something holds.

    Raises:
        AssertionError: if it does not within the time.
    """
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up, f"did not come about within {seconds} s"
        time.sleep(0.1)


@contextmanager
def worker() -> Iterator[None]:
    """Have ``timeline_worker`` run as a process of its own, and see that it stops cleanly."""
    command = [sys.executable, "-m", "django", "timeline_worker"]
    with (folder() / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        try:
            status = process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
    assert status == 0, f"the worker ended with {status}: {(folder() / 'worker.log').read_text()[-2000:]}"


def main(*modules: str) -> int:
    """Run the steps of some modules; gives how many failed."""
    sys.modules["seeing"] = sys.modules["__main__"]  # The modules import this one by its name.
    django.setup()
    logging.disable(logging.WARNING)  # Of the host; what failed is printed here.
    for module in modules:
        import_module(module)
    return sum(_fails(what, step) for what, step in steps)


def _fails(what: str, step: Step) -> bool:
    began = time.monotonic()
    try:
        figures = step()
    except Exception:  # noqa: BLE001  The next step is run whatever became of this one.
        print(f"  FAILED  {time.monotonic() - began:6.2f} s  {what}\n{traceback.format_exc()}", flush=True)
        return True
    print(f"  ok      {time.monotonic() - began:6.2f} s  {what}{f': {figures}' if figures else ''}", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
