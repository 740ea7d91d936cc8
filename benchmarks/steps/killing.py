"""What it costs that a worker is killed in the middle of a task of ours."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Final

import psycopg

from benchmarks.comparing.measuring import Measuring
from benchmarks.comparing.processes import Failed
from benchmarks.peers.jobs import HANGS, MEMBERS, STEPS

PATIENCE: Final = 180  # Seconds: a lease, and what there is around it.
ENTERED: Final = "SELECT count(*) FROM bench_pickup"
WORKER: Final = "SELECT worker FROM timeline_scheduledtask"
FIRST_AFTER: Final = "SELECT min(seconds) FROM bench_pickup WHERE seconds > %s"


def kill(measured: Measuring, url: str) -> dict[str, Any]:
    """
    Kill one of two workers in the third of four steps.

    Returns:
        How many seconds until the other entered a step of the task, and how many steps were entered again.

    Raises:
        Failed: if none did in time.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(measured.peer.about["clear"])
        connection.execute("TRUNCATE bench_pickup, bench_member")
        connection.execute(MEMBERS, [1])
        measured.peer.ask("enqueue", "steps_killed", 1)
        with measured.peer.working(2):
            _wait(connection, ENTERED, HANGS + 1)
            worker = connection.execute(WORKER).fetchone()[0]
            os.kill(int(worker.split(":")[-2]), signal.SIGKILL)
            killed = time.time()
            _wait(connection, measured.peer.about["completed"], 1)
        resumed = connection.execute(FIRST_AFTER, [killed]).fetchone()[0]
        return {"seconds": resumed - killed, "repeated": connection.execute(ENTERED).fetchone()[0] - STEPS}


def _wait(connection: psycopg.Connection[Any], count: str, wanted: int) -> None:
    give_up = time.monotonic() + PATIENCE
    while connection.execute(count).fetchone()[0] < wanted:
        if time.monotonic() > give_up:
            raise Failed(f"not {wanted} in {PATIENCE} s: {count}")
        time.sleep(0.05)
