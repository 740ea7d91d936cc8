"""Absurd: durable tasks in PostgreSQL, whose steps are checkpoints; its SQL comes with ``absurdctl``."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from typing import Any

import absurdctl
import psycopg
from absurd_sdk import Absurd, TaskContext

from benchmarks.peers.adapter import Adapter, Setting
from benchmarks.peers.jobs import COUNT_MEMBER, STEPS, done, entity_of

QUEUE, BATCH, POLL = "bench", 50, 0.05


class Peer(Adapter):
    """A worker with one connection, which does one task at a time."""

    title = "Absurd"
    package = "absurd-sdk"
    jobs = ("steps", "step_updates")
    settings = (
        Setting("batch_size", BATCH, "tasks taken at a time"),
        Setting("concurrency", 1, "its client has one connection; threads would wait for each other"),
        Setting("poll_interval", f"{POLL} s", "where there was nothing it looks again sooner than after 0.25 s"),
        Setting("updates", "begin_step, complete_step", "in a transaction of the connection that its client was given"),
    )
    slots = 1
    ready = "absurd worker"
    gate = f"absurd.r_{QUEUE}"
    tables = tuple(f"absurd.{kind}_{QUEUE}" for kind in "trcew")
    completed = f"SELECT count(*) FROM absurd.t_{QUEUE} WHERE state = 'completed'"  # noqa: S608
    clear = f"TRUNCATE {', '.join(tables)} CASCADE"
    notes = "Steps are asked for before they are done, and recorded by a function in the database."

    def __init__(self) -> None:
        super().__init__()
        self._connection = psycopg.connect(self.url, autocommit=True)
        self._app = Absurd(self._connection, queue_name=QUEUE)
        self._app.register_task(name="steps")(self._steps)
        self._app.register_task(name="step_updates")(self._step_updates)

    def install(self) -> None:
        self._connection.execute(absurdctl.BUNDLED_SCHEMA_SQL)
        self._app.create_queue()

    def enqueue(self, job: str, numbers: Iterable[int]) -> None:
        with self._connection.transaction():
            for number in numbers:
                self._app.spawn(job, {"number": number})

    def work(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: self._app.stop_worker())
        print("absurd worker", flush=True)
        self._app.start_worker(concurrency=1, batch_size=BATCH, poll_interval=POLL)

    def close(self) -> None:
        self._connection.close()

    def _steps(self, params: dict[str, Any], context: TaskContext) -> None:
        for number in range(STEPS):
            context.step("plain", lambda number=number: done(number))

    def _step_updates(self, params: dict[str, Any], context: TaskContext) -> None:
        """What a step writes and its checkpoint commit together: both are asked of one connection."""
        key = entity_of(params["number"], "step_updates")
        for _ in range(STEPS):
            handle = context.begin_step("update")
            if not handle.done:
                with self._connection.transaction():
                    self._connection.execute(COUNT_MEMBER, [key])
                    context.complete_step(handle, done(key))
