"""DBOS: durable workflows in PostgreSQL, taken from a queue by worker processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable
from functools import cache
from typing import Any

import psycopg
import sqlalchemy
from dbos import DBOS, DBOSClient, SQLAlchemyDatasource

from benchmarks.peers import jobs, mapped
from benchmarks.peers.adapter import LATER, Adapter, Setting

SLOTS, POLL, VERSION = 50, 0.05, "1"
URL = os.environ["BENCHMARK_DATABASE_URL"]
SQLALCHEMY_URL = mapped.url_of(URL)
FILL = """
INSERT INTO dbos.workflow_status (workflow_uuid, status, name, created_at, updated_at, queue_name, priority, inputs,
    delay_until_epoch_ms, owner_xid, serialization, application_name)
SELECT gen_random_uuid()::text, status, name, created_at, updated_at, queue_name, priority, inputs,
    delay_until_epoch_ms + number, owner_xid, serialization, application_name
FROM dbos.workflow_status, generate_series(%(first)s::int + 1, %(last)s::int - 1) AS number
WHERE workflow_uuid = %(like)s
"""


@DBOS.workflow()
def nothing(number: int) -> None:
    """Do nothing."""


@DBOS.workflow()
def count(number: int) -> None:
    """Count the entity up, in the transaction that records the step; the workflow's end is recorded after it."""
    datasource().run_tx_step({"isolation_level": "READ COMMITTED"}, count_up, number)


@DBOS.workflow()
def entity(number: int) -> None:
    """Count the job's own entity up, in the transaction that records the step."""
    datasource().run_tx_step({"isolation_level": "READ COMMITTED"}, count_up_member, number)


@DBOS.workflow()
def steps(number: int) -> None:
    """Take steps that call the outside."""
    for step in range(jobs.STEPS):
        plain(step)


@DBOS.workflow()
def step_updates(number: int) -> None:
    """Take steps that write, each in the transaction that records it."""
    for _ in range(jobs.STEPS):
        datasource().run_tx_step({"isolation_level": "READ COMMITTED"}, update, number)


@DBOS.workflow()
async def steps_async(number: int) -> None:
    """Take steps that call the outside, beside other workflows."""
    for step in range(jobs.STEPS):
        await outside(step)


@DBOS.step()
def plain(step: int) -> dict[str, object]:
    """Give something."""
    return jobs.done(step)


@DBOS.step()
async def outside(step: int) -> dict[str, object]:
    """Give something."""
    return jobs.done(step)


@DBOS.workflow()
def brief(number: int) -> None:
    """Wait for something near."""
    jobs.brief(number)


@DBOS.workflow()
def long(number: int) -> None:
    """Wait for something far."""
    jobs.long(number)


@DBOS.workflow()
def pick_up(number: int, sent: float) -> None:
    """Tell how long it waited. Threads have a connection each."""
    waited = time.time() - sent
    with psycopg.connect(URL, autocommit=True) as connection:
        connection.execute(jobs.PICKED_UP, [number, waited])


def count_up(number: int) -> None:
    """The statement, in the step's transaction."""
    statement = sqlalchemy.text(jobs.COUNT.replace("%s", ":entity"))
    datasource().sql_session().execute(statement, {"entity": jobs.entity_of(number)})


def update(number: int) -> dict[str, object]:
    """Count the job's own entity up, by the statement."""
    statement = sqlalchemy.text(jobs.COUNT_MEMBER.replace("%s", ":entity"))
    datasource().sql_session().execute(statement, {"entity": jobs.entity_of(number, "step_updates")})
    return jobs.done(number)


def count_up_member(number: int) -> None:
    """The same by the ORM."""
    datasource().sql_session().execute(mapped.count_up(number))


@cache
def datasource() -> SQLAlchemyDatasource:
    """Where steps record themselves in the transaction of what they write."""
    return SQLAlchemyDatasource.create(SQLALCHEMY_URL, engine_kwargs={"pool_size": SLOTS})


class Peer(Adapter):
    """A process with workers of its own, started as its documentation says."""

    title = "DBOS"
    package = "dbos"
    jobs = (*Adapter.jobs, "steps", "step_updates", "steps_async")
    settings = (
        Setting(
            "worker_concurrency", SLOTS, "workflows are taken at a poll, up to this many in hand, and run in threads"
        ),
        Setting("polling_interval_sec", POLL, "workers are not woken for queues; the default is 1 s, for each batch"),
        Setting("sys_db_pool_size", SLOTS, "one connection for each in hand"),
        Setting("entity, by the ORM", "SQLAlchemy", "its transactions are SQLAlchemy's"),
        Setting("executor_id", "the process's", "each worker must have its own"),
    )
    slots = SLOTS
    ready = "dbos worker"
    gate = "dbos.workflow_status"
    tables = (
        "dbos.workflow_status",
        "dbos.workflow_input",
        "dbos.workflow_output",
        "dbos.operation_outputs",
        "dbos.datasource_outputs",
    )
    completed = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'"
    clear = f"TRUNCATE {', '.join(tables)} CASCADE"
    notes = "A step's writes and its record commit together, the job's end after it: exactly once. A row for each step."

    def __init__(self) -> None:
        super().__init__()
        self._client: DBOSClient | None = None

    def install(self) -> None:
        self._launch()
        DBOS.register_queue("bench", worker_concurrency=SLOTS, polling_interval_sec=POLL)
        DBOS.destroy()

    def schedule_one(self, number: int) -> None:
        self._reach().enqueue(self._options("nothing", delay_seconds=LATER.total_seconds()), number)

    def enqueue(self, job: str, numbers: Iterable[int]) -> None:
        with sqlalchemy.create_engine(SQLALCHEMY_URL).begin() as connection:
            for number in numbers:
                self._reach().enqueue_in_transaction(connection, self._options(job), number)

    def feed(self, number: int, sent: float) -> None:
        self._reach().enqueue(self._options("pick_up"), number, sent)

    def work(self) -> None:
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        print("dbos worker", flush=True)
        self._launch()
        stop.wait()
        DBOS.destroy(workflow_completion_timeout_sec=0)

    def fill(self, first: int, last: int) -> None:
        if first == 0:
            options = self._options("nothing", workflow_id="like", delay_seconds=LATER.total_seconds())
            self._reach().enqueue(options, 0)
        with psycopg.connect(URL) as connection:
            connection.execute(FILL, {"first": first, "last": last, "like": "like"})

    def poll(self) -> None:
        self._take(SLOTS)

    def claim(self, many: int) -> int:
        return self._take(many)

    def remember(self, entity: int) -> list[object]:
        with psycopg.connect(URL) as connection:
            few = "SELECT workflow_uuid FROM dbos.workflow_status WHERE status = 'DELAYED' OFFSET %s LIMIT 10"
            return [key for (key,) in connection.execute(few, [entity * 10])]

    def cancel(self, entity: int, kept: list[object]) -> int:
        self._reach().cancel_workflows(kept)
        return len(kept)

    def close(self) -> None:
        if self._client is not None:
            self._client.destroy()

    def _launch(self) -> None:
        DBOS(
            config={
                "name": "bench",
                "system_database_url": SQLALCHEMY_URL,
                "sys_db_pool_size": SLOTS,
                "max_executor_threads": SLOTS,
                "executor_id": str(os.getpid()),
                "application_version": VERSION,
                "log_level": "WARNING",
            }
        )
        datasource()
        DBOS.launch()

    def _reach(self) -> DBOSClient:
        if self._client is None:
            self._client = DBOSClient(system_database_url=SQLALCHEMY_URL, application_name="bench")
        return self._client

    def _options(self, job: str, **more: object) -> Any:
        return {"workflow_name": job, "queue_name": "bench", **more}

    def _take(self, many: int) -> int:
        """As a worker does: what was delayed becomes due, then a batch is taken."""
        database, queue = self._reach()._sys_db, self._reach().retrieve_queue("bench")
        queue._worker_concurrency = many
        database.transition_delayed_workflows()
        taken, _ = database.start_queued_workflows(queue, "benchmark", VERSION, None, owner_xid="1")
        return len(taken)
