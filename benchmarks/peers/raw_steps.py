"""
The ceiling of steps: the statement that records one of ours, by hand in plain psycopg, on tasks that have begun already.

No Django takes part in it, nor does anything that one wants it for: no handler, no look at what is done, no end of the task.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg

from benchmarks.peers.adapter import Setting
from benchmarks.peers.jobs import COUNT_MEMBER, STEPS, done
from benchmarks.peers.timeline_site import TimelineAdapter

# The statement of ours.
VALUES = "%(origin)s, %(name)s, %(task)s, %(attempt)s, %(kind)s, %(at)s, %(seconds)s, %(digest)s, %(code)s, %(result)s"
WITHIN = f"SELECT stored FROM timeline_record_step({VALUES}, %(patience)s)"  # noqa: S608 (in a transaction)
ALONE = f"SELECT stored FROM timeline_record_step({VALUES}, NULL)"  # noqa: S608
BEGIN_ALL = """
UPDATE timeline_scheduledtask SET state = 'active', seq = seq + 1, attempt = 1, worker = 'raw', started_at = now(),
    lease_expires_at = now() + interval '1 day'
WHERE state = 'available'
"""
GATE = "UPDATE timeline_scheduledtask SET seq = seq WHERE false"  # Waits until it is open; a step has no patience for that.
BEGUN = "SELECT id, task_key, entity_id::int FROM timeline_scheduledtask WHERE state = 'active' ORDER BY id"


class Peer(TimelineAdapter):
    """No library at all."""

    title = "raw SQL, the same records"
    package = "psycopg"
    jobs = ("steps", "step_updates")
    settings = (Setting("prepared", "yes", "psycopg prepares by itself what it is asked a sixth time"),)
    slots = 1
    ready = "raw worker"
    tables = (*TimelineAdapter.tables, "timeline_step")
    completed = f"SELECT count(*) / {STEPS} FROM timeline_step"  # noqa: S608
    clear = f"TRUNCATE {', '.join(tables)} CASCADE"
    notes = "A ceiling, not a product: of a task nothing but the records of its steps."

    def enqueue(self, job: str, numbers: Iterable[int]) -> None:
        super().enqueue(job, numbers)
        with psycopg.connect(self.url) as connection:
            connection.execute(BEGIN_ALL)

    def work(self) -> None:
        stopped: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
        with psycopg.connect(self.url, autocommit=True) as connection:
            begun = connection.execute(BEGUN).fetchall()
            print(f"raw worker {os.getpid()}", flush=True)
            connection.execute(GATE)
            for task, key, entity in begun:
                for number in range(0 if stopped else STEPS):
                    if key == "stepping.step_updates":
                        with connection.transaction():
                            connection.execute(COUNT_MEMBER, [entity])
                            connection.execute(WITHIN, record(task, number)).fetchall()
                    else:
                        connection.execute(ALONE, record(task, number)).fetchall()
        while not stopped:
            time.sleep(0.01)


def record(task: UUID, number: int) -> dict[str, Any]:
    """What is recorded of a step, as long as ours."""
    return {
        "origin": task,
        "name": f"plain#{number}",
        "task": task,
        "attempt": 1,
        "kind": "done",
        "at": datetime.now(UTC),
        "seconds": 0.00001,
        "digest": "0123456789abcdef",
        "code": "01234",
        "result": json.dumps(done(number)),
        "patience": "0.05 seconds",
    }
