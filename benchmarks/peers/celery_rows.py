"""Celery with a row written by hand for each task: what a team makes itself in an afternoon."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable

import psycopg
from celery import Celery
from django.db import connection as django_connection
from django.db import transaction
from kombu import Queue

from benchmarks.peers import jobs
from benchmarks.peers.adapter import LATER, Adapter, Setting, chunks
from benchmarks.peers.django_site import set_up
from benchmarks.peers.jobs import COUNT, entity_of

set_up()

from benchmarks.peers import by_orm  # noqa: E402 (Django is set up first)

QUEUE = f"{os.environ['QUEUE_PREFIX']}-rows"
POLL, BATCH, SLOTS = 0.05, 500, 1
TABLE = """
CREATE TABLE own_task (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job text NOT NULL, entity integer NOT NULL,
    due_at timestamptz NOT NULL, state text NOT NULL DEFAULT 'waiting', sent double precision, done_at timestamptz
);
CREATE INDEX own_task_due ON own_task (due_at) WHERE state = 'waiting';
CREATE INDEX own_task_entity ON own_task (entity) WHERE state = 'waiting';
"""
INSERT = "INSERT INTO own_task (job, entity, due_at, sent) VALUES (%s, %s, now() + %s, %s)"
TAKE = """
UPDATE own_task SET state = 'sent' WHERE id IN (
    SELECT id FROM own_task WHERE state = 'waiting' AND due_at <= now() ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED
) RETURNING id
"""
START = "UPDATE own_task SET state = 'started' WHERE id = %s AND state = 'sent' RETURNING job, entity, sent"
DONE = "UPDATE own_task SET state = 'done', done_at = now() WHERE id = %s AND state = 'started'"
CANCEL = "UPDATE own_task SET state = 'cancelled' WHERE entity = %s AND state = 'waiting'"
FILL = """
INSERT INTO own_task (job, entity, due_at) SELECT 'nothing', number / 10, now() + interval '30 days'
FROM generate_series(%s::int, %s::int - 1) AS number
"""

app = Celery("rows", broker=os.environ["BROKER_URL"])
app.conf.update(
    task_ignore_result=True,
    task_default_queue=QUEUE,
    worker_prefetch_multiplier=50,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)


@app.task(name="run")
def run(task_id: int) -> None:
    """Start, do, end: two commits, and for what writes here one for its write and the end together."""
    connection = jobs.connection()
    started = connection.execute(START, [task_id]).fetchone()
    if started is None:
        return
    job, entity, sent = started
    if job == "count":
        with connection.transaction():
            connection.execute(COUNT, [entity])
            connection.execute(DONE, [task_id])
        return
    if job == "entity":
        with transaction.atomic(), django_connection.cursor() as cursor:
            by_orm.entity(entity)
            cursor.execute(DONE, [task_id])
        return
    if job == "pick_up":
        jobs.pick_up(entity, sent)
    else:
        getattr(jobs, job)(entity)
    connection.execute(DONE, [task_id])


class Peer(Adapter):
    """Celery's own worker, and a loop that sends what is due."""

    title = "Celery + own rows"
    package = "celery"
    settings = (
        Setting("worker", "-c 1 --without-gossip --without-mingle --without-heartbeat", "one process for jobs"),
        Setting("prefetch", 50, "fewer trips to the broker"),
        Setting("poll", f"{POLL} s, {BATCH} rows", "one loop, as beat would, only more often"),
    )
    ready = "ready."
    helpers = {"poller": "sends what is due"}
    gate = "own_task"
    tables = ("own_task",)
    completed = "SELECT count(*) FROM own_task WHERE state = 'done'"
    clear = "TRUNCATE own_task"
    together = True
    notes = "What a message or a worker loses stays sent or started for ever: no lease, no retry, no log, no guard."

    def __init__(self) -> None:
        super().__init__()
        self._connection = psycopg.connect(self.url, autocommit=True)

    def install(self) -> None:
        self._connection.execute(TABLE)

    def schedule_one(self, number: int) -> None:
        self._connection.execute(INSERT, ["nothing", entity_of(number), LATER, None])

    def schedule_many(self, numbers: Iterable[int]) -> None:
        self._insert("nothing", numbers, LATER)

    def enqueue(self, job: str, numbers: Iterable[int]) -> None:
        """After a drain that was cut short many messages wait whose rows are gone."""
        with app.connection_for_write() as connection:
            connection.default_channel.queue_purge(QUEUE)
        self._insert(job, numbers, LATER * 0)

    def feed(self, number: int, sent: float) -> None:
        self._connection.execute(INSERT, ["pick_up", number, LATER * 0, sent])

    def work(self) -> None:
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        app.worker_main(["worker", "-c", str(SLOTS), "-Q", QUEUE, "-n", f"{os.getpid()}@%h", "-l", "INFO", *quiet])

    def help(self, helper: str) -> None:
        print("sends what is due", flush=True)
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        while not stop.is_set():
            if not self._send(BATCH):
                stop.wait(POLL)

    def fill(self, first: int, last: int) -> None:
        self._connection.execute(FILL, [first, last])

    def poll(self) -> None:
        self._send(BATCH)

    def claim(self, many: int) -> int:
        return len(self._connection.execute(TAKE, [many]).fetchall())

    def cancel(self, entity: int, kept: list[object]) -> int:
        return self._connection.execute(CANCEL, [entity]).rowcount

    def remove(self) -> None:
        with app.connection_for_write() as connection:
            channel = connection.default_channel
            Queue(QUEUE, routing_key=QUEUE)(channel).declare()
            channel.queue_purge(QUEUE)
            channel.queue_delete(QUEUE)
            channel.exchange_delete(QUEUE)
            channel.client.delete(f"_kombu.binding.{QUEUE}", f"_kombu.binding_permanent.{QUEUE}")

    def close(self) -> None:
        self._connection.close()

    def _send(self, many: int) -> int:
        taken = self._connection.execute(TAKE, [many]).fetchall()
        if taken:
            with app.producer_pool.acquire(block=True) as producer:
                for (task_id,) in taken:
                    run.apply_async((task_id,), producer=producer)
        return len(taken)

    def _insert(self, job: str, numbers: Iterable[int], later: object) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for some in chunks(numbers):
                cursor.executemany(INSERT, [(job, entity_of(number, job), later, None) for number in some])
