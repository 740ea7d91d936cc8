"""
The ceiling: the rows ours writes, log and all, by hand in plain psycopg. What is missing is all that one wants it for.

One statement starts a hundred tasks and one ends them, each with its log rows.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable

import psycopg

from benchmarks.peers import jobs
from benchmarks.peers.adapter import LATER, Adapter, Setting, chunks
from benchmarks.peers.jobs import COUNT, COUNT_MANY, COUNT_MEMBER
from benchmarks.peers.timeline_site import TimelineAdapter

GROUP = 100
ALONE = {"work.count": COUNT, "membership.count": COUNT_MEMBER}  # What a job writes, committed with its end.
# The same shape for each move: take rows, change them, log it, in one statement.
MOVE = """
WITH taken AS (
    SELECT id, state FROM timeline_scheduledtask WHERE {taken} FOR NO KEY UPDATE {skip}
), moved AS (
    UPDATE timeline_scheduledtask AS task SET seq = task.seq + 1, {changes}
    FROM taken WHERE task.id = taken.id RETURNING task.*, taken.state AS state_before
), logged AS (
    INSERT INTO timeline_logentry (task_id, seq, at, from_state, to_state, attempt, actor, reason_code, reason, detail)
    SELECT id, seq, now(), state_before, state, attempt, '', reason_code, reason, '{{}}' FROM moved
)
SELECT id, task_key, entity_id::int, payload FROM moved
"""
READY = "state = 'available' ORDER BY priority, scheduled_at, id LIMIT %(limit)s"
START = MOVE.format(
    taken=READY,
    skip="SKIP LOCKED",
    changes="state = 'active', attempt = task.attempt + 1, lease_expires_at = clock_timestamp() + interval '60 s', "
    "worker = 'raw', started_at = now()",
)
CLAIM = MOVE.format(
    taken=READY,
    skip="SKIP LOCKED",
    changes="state = 'pending', claim_token = gen_random_uuid(), lease_expires_at = clock_timestamp() + interval '60 s'",
)
END = MOVE.format(
    taken="id = ANY(%(ids)s) AND state = 'active' ORDER BY id",
    skip="",
    changes="state = 'completed', lease_expires_at = NULL, result = 'null', reason_code = 'done', finished_at = now()",
)
CANCEL = MOVE.format(
    taken="entity_label = 'accounts.user' AND entity_id = %(entity)s AND state = 'scheduled' ORDER BY id::text",
    skip="",
    changes="state = 'cancelled', reason_code = 'operator', reason = 'paid', finished_at = now()",
)
DUE = (
    "SELECT id FROM timeline_scheduledtask WHERE state IN ('scheduled', 'retryable') AND scheduled_at <= now() LIMIT 1"
)


class Peer(TimelineAdapter):
    """No library at all."""

    title = "raw SQL, the same rows"
    jobs = (*Adapter.jobs, "many")
    package = "psycopg"
    settings = (
        Setting(
            "group",
            GROUP,
            "tasks in one statement; those that write here are started together, and each ends in a commit of its own",
        ),
    )
    slots = 1
    ready = "raw worker"
    notes = "A ceiling, not a product: no guard, no last look, no retry, no lease kept up."

    def __init__(self) -> None:
        super().__init__()
        self._connection = psycopg.connect(self.url)

    def schedule_one(self, number: int) -> None:
        self.insert(self._connection, "nothing", [number], LATER)

    def schedule_many(self, numbers: Iterable[int]) -> None:
        for some in chunks(numbers):
            self.insert(self._connection, "nothing", some, LATER)

    def feed(self, number: int, sent: float) -> None:
        self.insert(self._connection, "pick_up", [number], number=number, sent=sent)

    def work(self) -> None:
        stopped: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
        print(f"raw worker {os.getpid()}", flush=True)
        while not stopped:
            if not self._run_group():
                time.sleep(0.01)

    def poll(self) -> None:
        with self._connection.transaction():
            self._connection.execute(DUE).fetchall()
            self._connection.execute(CLAIM, {"limit": GROUP}).fetchall()

    def claim(self, many: int) -> int:
        with self._connection.transaction():
            return len(self._connection.execute(CLAIM, {"limit": many}).fetchall())

    def cancel(self, entity: int, kept: list[object]) -> int:
        with self._connection.transaction():
            return len(self._connection.execute(CANCEL, {"entity": str(entity)}).fetchall())

    def close(self) -> None:
        self._connection.close()
        super().close()

    def _run_group(self) -> int:
        """A slow job goes alone, so that two workers share them; the first of a group tells."""
        with self._connection.transaction():
            group = self._connection.execute(START, {"limit": self._limit}).fetchall()
        self._limit = 1 if group and group[0][1] in ("work.brief", "work.long") else GROUP
        together = [key for key, name, entity, payload in group if name not in ALONE]
        many = [entity for key, name, entity, payload in group if name == "work.many"]
        for key, name, entity, payload in group:
            if name == "work.many":
                continue
            if name in ALONE:
                with self._connection.transaction():
                    self._connection.execute(ALONE[name], [entity])
                    self._connection.execute(END, {"ids": [key]})
            else:
                getattr(jobs, name.partition(".")[2])(**(payload or {"number": entity}))
        if together:
            with self._connection.transaction():
                self._connection.execute(COUNT_MANY, [many])
                self._connection.execute(END, {"ids": together})
        return len(group)

    _limit = 1
