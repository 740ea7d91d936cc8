"""Write the journal: a file for each process, one line a write, which a kill of the process leaves whole."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

# A process whose clock is moved writes the time that it is.
_MOVED = float(os.environ.get("FAULTS_CLOCK_MOVED", "0"))
_files: dict[int, int] = {}
_witness = threading.local()


def clock() -> float:
    """Seconds since 1970, also where this process is told another time."""
    return time.time() - _MOVED


def write(what: str, *, at: float | None = None, **columns: Any) -> None:
    """Append a line."""
    line = json.dumps({"what": what, "at": clock() if at is None else at, **columns}) + "\n"
    os.write(_file(), line.encode())


def entered(tasks: Sequence[Any], kind: str, keys: Sequence[object]) -> list[str]:
    """
    Say that a handler is entered, with what somebody else sees of the rows now.

    Args:
        tasks: The rows, as the handler was told them.
        kind: ``atomic`` or ``plain``.
        keys: The idempotency key of each.

    Returns:
        A name of each entry, to be told when it is left.
    """
    at, seen = clock(), _seen([task.pk for task in tasks])
    calls = [uuid.uuid4().hex for _ in tasks]
    for call, task, key in zip(calls, tasks, keys, strict=True):
        write(
            "enter",
            at=at,
            call=call,
            task=str(task.pk),
            attempt=task.attempt,
            kind=kind,
            key=str(key),
            group=os.getpgid(0),
            seen=seen.get(task.pk),
        )
    return calls


def left(calls: Sequence[str], how: str) -> None:
    """Say that handlers are left: ``done`` or ``raised``."""
    at = clock()
    for call in calls:
        write("leave", at=at, call=call, how=how)


def _file() -> int:
    """The file of this process: one, also if two threads open it at the same time, as files are read one by one."""
    pid = os.getpid()
    if pid not in _files:
        path = Path(os.environ["TEST_FOLDER"]) / f"{pid}-{time.time_ns()}.jsonl"
        opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        if _files.setdefault(pid, opened) != opened:
            os.close(opened)
    return _files[pid]


def _seen(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[str, int]]:
    """What is committed of these rows, asked on a connection of its own, past all that hinders others; or nothing."""
    if not (url := os.environ.get("FAULTS_WITNESS_URL")):
        return {}
    for _ in range(2):  # The server may have been started anew since.
        with suppress(psycopg.Error):
            if getattr(_witness, "owner", 0) != os.getpid():
                _witness.connection, _witness.owner = (
                    psycopg.connect(url, autocommit=True, connect_timeout=2),
                    os.getpid(),
                )
            query = "SELECT id, state, attempt FROM timeline_scheduledtask WHERE id = ANY(%s)"
            return {row[0]: (row[1], row[2]) for row in _witness.connection.execute(query, [list(ids)])}
        _witness.owner = 0
    return {}
