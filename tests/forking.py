"""
Starting processes of Python: forked from one that has all loaded (``tests.nursery``), where that cannot be told from a start.

A worker of the tests takes most of a second of processor time until it works, nearly all of it to load Django, Celery and the
apps; forked, it takes some hundredths. Started as people do are all others: what is measured for coverage, what has its clock
moved, modules other than those in ``FORKED``, and everything with ``FORK=0``.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
# Module → the kind of nursery that it is forked in.
FORKED: Final = {
    "celery": "celery",
    "manage": "manage",
    "tests.dying": "manage",
    "tests.faults.chaos.clients": "manage",
    "tests.faults.planted.course": "others",
    "tests.faults.restarting": "manage",
}
# Read once, when an interpreter starts.
AT_THE_START: Final = ("COVERAGE_", "LD_PRELOAD", "FAKETIME", "PYTHON")


class Forked:
    """A process that was forked elsewhere: as much of ``subprocess.Popen`` as tests use."""

    def __init__(self, pid: int, told: Connection) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._told = told

    def poll(self) -> int | None:
        """How it ended, if it has."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, for so many seconds at most."""
        ended = self._look(timeout)
        if ended is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return ended

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _look(self, seconds: float | None) -> int | None:
        if self.returncode is None and self._told.poll(seconds):
            self.returncode = self._told.recv()
            self._told.close()
        return self.returncode


Process = subprocess.Popen[bytes] | Forked


def start(*command: str, environment: Mapping[str, str], log: Any) -> Process:
    """
    Start a module of Python, in a session of its own so that it can be killed together with what it forks.

    Args:
        command: Its name, and its arguments.
        environment: All of it.
        log: An open file that it prints to.
    """
    given = dict(environment)
    if _may_be_forked(command, given):
        return _nursery(FORKED[command[0]], given).fork(command, given, log)
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def _may_be_forked(command: tuple[str, ...], environment: dict[str, str]) -> bool:
    mine = {name: given for name, given in os.environ.items() if name.startswith(AT_THE_START)}
    theirs = {name: given for name, given in environment.items() if name.startswith(AT_THE_START)}
    return (
        command[0] in FORKED
        and mine == theirs
        and not any(name.startswith("COVERAGE_") for name in mine)
        and hasattr(os, "pidfd_open")
        and os.environ.get("FORK") != "0"
        and "gevent" not in command  # It replaces what has to be replaced before anything is loaded.
    )


class _Nursery:
    """The process that forks, as seen from here."""

    def __init__(self, kind: str, environment: dict[str, str]) -> None:
        self._kind = kind
        self._one_at_a_time = threading.Lock()
        self._door, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.nursery", str(other.fileno()), kind],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                start_new_session=True,
            )
        atexit.register(self.end)

    def fork(self, command: tuple[str, ...], environment: dict[str, str], log: Any) -> Forked:
        """Have a process forked."""
        told, tells = Pipe(duplex=False)
        with self._one_at_a_time, tells:
            message = json.dumps({"command": command, "environment": environment}).encode()
            socket.send_fds(self._door, [message], [log.fileno(), tells.fileno()])
            answer = self._door.recv(64)
        assert answer, f"the nursery of {self._kind} has ended"
        return Forked(int(answer), told)

    def end(self) -> None:
        """Let it end; what it forked goes on."""
        self._door.close()
        self._process.wait(60)


_nurseries: dict[tuple[str, ...], _Nursery] = {}


def _nursery(kind: str, environment: dict[str, str]) -> _Nursery:
    """The nursery of such processes; started with the first of them, in its environment."""
    vendor = environment["TEST_DATABASE_URL"].partition(":")[0]
    key = (environment["DJANGO_SETTINGS_MODULE"], vendor, kind)
    if key not in _nurseries:
        _nurseries[key] = _Nursery(kind, environment)
    return _nurseries[key]
