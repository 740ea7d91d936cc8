"""Processes by role, each in a process group of its own, on the database and the broker that the harness names."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.forking import start
from tests.tools import faketime

ROOT: Final = Path(__file__).resolve().parents[3]

# Role → what is run as a module of Python. ``{queue}``, ``{poll_queue}``, ``{name}`` and ``{folder}`` are filled in.
_CELERY: Final = ("celery", "-A", "project")
_WORKER: Final = (*_CELERY, "worker", "-n", "{name}@faults", "--without-gossip", "--without-mingle")
ROLES: Final[dict[str, tuple[str, ...]]] = {
    "worker": ("manage", "timeline_worker", "--name", "{name}"),
    "worker with threads": ("manage", "timeline_worker", "--name", "{name}", "--threads", "4"),
    "celery prefork": (*_WORKER, "-Q", "{queue}", "-c", "2"),
    "celery threads": (*_WORKER, "-Q", "{queue}", "-c", "2", "-P", "threads"),
    "celery poll": (*_WORKER, "-Q", "{poll_queue}", "-c", "1"),
    "poller": ("manage", "timeline_poll"),
    "clock": ("tests.faults.app.clock",),
    "beat": (*_CELERY, "beat", "--pidfile", "{folder}/{name}.pid"),
}


class Journal:
    """What the harness writes down: what it did, to whom, and when."""

    def __init__(self, folder: Path, name: str = "harness") -> None:
        self._path = folder / f"{name}.jsonl"

    def write(self, what: str, *, at: float | None = None, **columns: object) -> None:
        """Append a line."""
        with self._path.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps({"what": what, "at": time.time() if at is None else at, **columns}) + "\n")

    def trouble(self, kind: str, group: int, since: float, until: float | None) -> None:
        """Something was done to a group of processes (0: to all), until then (None: for good)."""
        self.write("trouble", at=since, kind=kind, group=group, until=until)


class Process:
    """
    A process and what it forks.

    Args:
        role: Of ``ROLES``.
        name: Of its log file, and shown on rows.
        environment: Added to that of this process.
        journal: Where it is written down what is done to it.
    """

    def __init__(self, role: str, name: str, environment: dict[str, str], journal: Journal, moved: float = 0) -> None:
        self.role, self.name = role, name
        self.moved = moved
        self._environment = environment
        self._journal = journal
        self._frozen_since: float | None = None
        self._folder = Path(environment["TEST_FOLDER"])
        self._start()

    @property
    def group(self) -> int:
        """Id of its process group."""
        return self._popen.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs, or is frozen."""
        return self._popen.poll() is None

    def kill(self) -> None:
        """SIGKILL, to all of its group."""
        since = time.time()
        self._signal(signal.SIGKILL)
        self._popen.wait()
        self._journal.trouble("killed", self.group, since, None)

    def freeze(self) -> None:
        """SIGSTOP: it holds what it holds, and does nothing."""
        self._frozen_since = time.time()
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        if self._frozen_since is not None:
            self._journal.trouble("frozen", self.group, self._frozen_since, time.time())
            self._frozen_since = None
            self._signal(signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM, to the first of the group: it is to stop when it is through."""
        with suppress(ProcessLookupError):
            os.kill(self._popen.pid, signal.SIGTERM)

    def wait(self, seconds: float) -> bool:
        """Whether it ends within this time."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)
        return not self.is_alive

    def restart(self, moved: float = 0) -> None:
        """Start it again; its clock may be moved by so many seconds from the true time."""
        self.moved = moved
        self._start()

    def _start(self) -> None:
        values = {
            "name": self.name,
            "folder": str(self._folder),
            "queue": f"{self._environment['TEST_QUEUE_PREFIX']}.default",
            "poll_queue": f"{self._environment['TEST_QUEUE_PREFIX']}-poll",
        }
        (self._folder / f"{self.name}.pid").unlink(missing_ok=True)
        command = [word.format(**values) for word in ROLES[self.role]]
        with (self._folder / f"{self.name}.log").open("ab") as log:
            environment = {**surroundings(), **self._environment, **_moved(self.moved)}
            self._popen = start(*command, environment=environment, log=log)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, number)


def surroundings() -> dict[str, str]:
    """
    This process's environment without what measures coverage, as who may be killed at any time writes no good file of it; and
    without what makes each word be seen at once, which users do not set.
    """
    left_out = ("COVERAGE_", "PYTHONUNBUFFERED")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


def _moved(seconds: float) -> dict[str, str]:
    """What moves a process's clocks: libfaketime, all of them together."""
    if not seconds:
        return {}
    return {"LD_PRELOAD": str(faketime()), "FAKETIME": f"{seconds:+g}", "FAULTS_CLOCK_MOVED": str(seconds)}
