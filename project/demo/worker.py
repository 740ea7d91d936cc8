"""The worker of the demo, which may be killed from its page; another one begins soon after."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Final

from django.conf import settings

from project.demo.processes import start_process

AWAY: Final = 5.0  # Seconds between a kill and the next one.


def wish() -> Path:
    """The file that says, while it is there, that the worker is to be killed."""
    return Path(settings.DATA_DIR) / "kill-worker"


def killed() -> Path:
    """The file that says, while it is there, that no worker runs."""
    return Path(settings.DATA_DIR) / "worker-is-killed"


class Worker:
    """
    One worker at a time.

    Args:
        stack: It ends with it.
        command: As ``start_process`` takes it.
    """

    def __init__(self, stack: ExitStack, *command: str) -> None:
        self._stack, self._command = stack, command
        self._count, self._again_at = 0, 0.0
        self._start()

    @property
    def pid(self) -> int:
        """Of the present one, or of the last."""
        return self._process.pid

    def look(self) -> str:
        """
        Do what is asked for.

        Returns:
            What was done, in words; empty: nothing.
        """
        if killed().exists():
            if monotonic() < self._again_at:
                return ""
            self._start()
            return f"Another worker begins: pid {self.pid}."
        if not wish().exists():
            return ""
        wish().unlink()
        killed().touch()
        os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._again_at = monotonic() + AWAY
        return f"kill -9 {self.pid}: nobody runs anything for {AWAY:g} s."

    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return not killed().exists() and self._process.poll() is not None

    def _start(self) -> None:
        self._count += 1
        name = "worker" if self._count == 1 else f"worker-{self._count}"
        self._process = start_process(self._stack, name, *self._command)
        wish().unlink(missing_ok=True)
        killed().unlink(missing_ok=True)
