"""A peer as processes: one that is asked, and one for each worker and what it needs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Timer
from time import monotonic, sleep
from typing import Any, Final

from benchmarks.comparing.plan import FOLDER

PATIENCE: Final = 3600  # Seconds for one command: millions of rows take a while.
START: Final = 40  # Seconds for workers to come up.
ANSWERS: Final = ('{"answer"', '{"not_offered"')
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
        self._asked: subprocess.Popen[str] | None = None

    def close(self) -> None:
        """Have nothing more to ask."""
        if self._asked is not None:
            with suppress(BrokenPipeError), self._asked as asked:
                asked.stdin.close()
                with suppress(subprocess.TimeoutExpired):
                    asked.wait(5)
                end(asked)

    def ask(self, command: str, *numbers: object) -> dict[str, Any]:
        """
        Have it do one thing; give ``{"answer": …}``, or ``{"not_offered": why}``.

        Raises:
            Failed: if it ended badly.
        """
        asked = self._asked or self._start(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._asked = None  # Until it has answered: one that failed is not asked again.
        with suppress(BrokenPipeError):
            print(json.dumps([command, *numbers]), file=asked.stdin, flush=True)
        impatient = Timer(PATIENCE, asked.kill)
        impatient.start()
        said = []
        try:
            for line in asked.stdout:
                if line.startswith(ANSWERS):  # Libraries print, too.
                    self._asked = asked
                    answer: dict[str, Any] = json.loads(line)
                    return answer
                said.append(line)
        finally:
            impatient.cancel()
            if self._asked is None:
                with suppress(BrokenPipeError), asked:
                    end(asked)
        raise Failed(f"{self.name} {command}: {''.join(said).strip()[-2000:]}")

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
            started = self._start(*command, stdout=output, stderr=output)
        try:
            yield
        finally:
            end(started)

    def _start(self, *command: str, **streams: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603
            [*self._command, *command],
            cwd=FOLDER.parent,
            env=self._environment,
            text=True,
            start_new_session=True,
            **streams,
        )


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


def end(process: subprocess.Popen[str]) -> None:
    """Let it stop, and after five seconds take away what is left of its session."""
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
