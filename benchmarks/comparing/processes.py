"""A peer as processes: one for each thing it is asked to do, one for each worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from benchmarks.comparing.plan import FOLDER

PATIENCE: Final = 3600  # Seconds for one command: millions of rows take a while.
START: Final = 40  # Seconds for workers to come up.
SETTLE: Final = 1.0  # Seconds from the last process's word to the first job.


class Failed(Exception):
    """A peer's process ended badly; what it said last is the text."""


class Processes:
    """
    A peer, by its name and interpreter.

    Args:
        name: Of the adapter.
        python: Its interpreter.
        environment: Database, broker and names of queues.
    """

    def __init__(self, name: str, python: str, environment: dict[str, str]) -> None:
        self.name = name
        self._command = [python, "-m", "benchmarks.peers", name]
        self._environment = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        self.about: dict[str, Any] = {}

    def ask(self, command: str, *numbers: object) -> dict[str, Any]:
        """
        Have it do one thing; give ``{"answer": …}``, or ``{"not_offered": why}``.

        Raises:
            Failed: if it ended badly.
        """
        done = subprocess.run(  # noqa: S603
            [*self._command, command, *map(str, numbers)],
            cwd=FOLDER.parent,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode:
            raise Failed(f"{self.name} {command}: {done.stderr.strip()[-2000:]}")
        answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return answer

    @contextmanager
    def working(self, workers: int) -> Iterator[None]:
        """Have so many workers up, and the processes they need beside them."""
        with tempfile.TemporaryDirectory(prefix="timeline-benchmark-") as folder, ExitStack() as stack:
            helpers = {Path(folder) / f"{name}.log": text for name, text in self.about["helpers"].items()}
            logs = {Path(folder) / f"worker{number}.log": self.about["ready"] for number in range(workers)}
            for log in logs:
                stack.enter_context(self._process(log, "work"))
            for log in helpers:
                stack.enter_context(self._process(log, "help", log.stem))
            wait_for_texts({**logs, **helpers})
            sleep(SETTLE)
            yield

    @contextmanager
    def _process(self, log: Path, *command: str) -> Iterator[None]:
        """Run it in a session of its own, so that it ends together with what it forked."""
        with log.open("wb") as output:
            started = subprocess.Popen(  # noqa: S603
                [*self._command, *command],
                cwd=FOLDER.parent,
                env=self._environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield
        finally:
            end(started)


def wait_for_texts(logs: dict[Path, str]) -> None:
    """
    Wait until each file has its text.

    Raises:
        Failed: if one does not in time.
    """
    give_up = monotonic() + START
    while waiting := [log for log, text in logs.items() if text not in log.read_text(errors="replace")]:
        if monotonic() > give_up:
            raise Failed(f"A process did not come up: {waiting[0].read_text(errors='replace')[-2000:]}")
        sleep(0.05)


def end(process: subprocess.Popen[bytes]) -> None:
    """Let it stop, and after five seconds take away what is left of its session."""
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
