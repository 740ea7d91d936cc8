"""Processes that the demo starts, and ends again whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from django.conf import settings


class Interrupted(Exception):
    """Ctrl-C, or SIGTERM."""


def start_process(stack: ExitStack, name: str, *command: str) -> subprocess.Popen[bytes]:
    """Start a module (``manage`` or ``celery``); it ends with the stack, and its output is in ``<name>.log``."""
    # Django's checks, for which each of them would load all pages and the API, were asked of the command that starts them.
    if command[0] == "manage":
        command = (*command, "--skip-checks")
    log = stack.enter_context((Path(settings.DATA_DIR) / f"{name}.log").open("wb"))
    # In a session of its own, so that Ctrl-C reaches this process alone, which then ends the others in order.
    process = subprocess.Popen(  # noqa: S603 (our own command)
        [sys.executable, "-m", *command],
        cwd=settings.BASE_DIR,
        env=os.environ | {"CELERY_SKIP_CHECKS": "1"},
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    stack.callback(end, process)
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to stop, and stop it if it does not within half a minute."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise ``Interrupted`` within the block."""
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_signal: object) -> None:
    raise Interrupted
