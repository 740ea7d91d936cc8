"""Procrastinate: jobs in PostgreSQL, asynchronous workers woken by NOTIFY."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import psycopg
from procrastinate import App, PsycopgConnector

from benchmarks.peers import looping
from benchmarks.peers.adapter import LATER, Adapter, Setting, chunks, one_by_one
from benchmarks.peers.django_site import set_up

SLOTS = 20
set_up()

from benchmarks.peers import by_orm  # noqa: E402 (Django is set up first)

FILL = """
INSERT INTO procrastinate_jobs (queue_name, task_name, args, scheduled_at)
SELECT 'default', 'nothing', jsonb_build_object('number', number / 10), now() + interval '30 days'
FROM generate_series(%(first)s::int, %(last)s::int - 1) AS number
"""


class Peer(Adapter):
    """Its own ``app.run_worker``."""

    title = "Procrastinate"
    package = "procrastinate"
    settings = (
        Setting("concurrency", SLOTS, "jobs are fetched one by one; this many may then run and be completed meanwhile"),
        Setting(
            "fetch_job_polling_interval", "0.5 s", "NOTIFY wakes a worker; it looks by itself more often than every 5 s"
        ),
        Setting("entity, by the ORM", "def", "a plain function, which it runs in a thread; the other jobs are async"),
        Setting("connections", "4 to 20", "one for each job in hand, so that none waits to be completed"),
    )
    slots = SLOTS
    ready = "Starting worker"
    gate = "procrastinate_jobs"
    tables = ("procrastinate_jobs", "procrastinate_events")
    completed = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"
    clear = "TRUNCATE procrastinate_jobs, procrastinate_events, procrastinate_periodic_defers"
    notes = "At least once; a job's writes and its completion commit apart. A log row for each step, by trigger."

    def __init__(self) -> None:
        super().__init__()
        self._app = App(connector=PsycopgConnector(conninfo=self.url, min_size=4, max_size=SLOTS))
        tasks = (looping.nothing, by_orm.entity, looping.count, looping.brief, looping.long, looping.pick_up)
        self._tasks = {task.__name__: self._app.task(name=task.__name__)(task) for task in tasks}
        self._run = looping.Loop()
        self._opened, self._worker = False, 0
        self._fetching = App(connector=PsycopgConnector(conninfo=self.url, min_size=1, max_size=1))

    def install(self) -> None:
        with self._app.open():
            self._app.schema_manager.apply_schema()

    def schedule_one(self, number: int) -> None:
        self._open()
        self._tasks["nothing"].configure(schedule_at=datetime.now(UTC) + LATER).defer(number=number)

    def schedule_many(self, numbers: Iterable[int]) -> None:
        self._open()
        later = self._tasks["nothing"].configure(schedule_at=datetime.now(UTC) + LATER)
        for some in chunks(numbers):
            later.batch_defer(*({"number": number} for number in some))

    def enqueue(self, job: str, numbers: Iterable[int]) -> None:
        self._open()
        for some in chunks(numbers):
            self._tasks[job].batch_defer(*({"number": number} for number in some))

    def feed(self, number: int, sent: float) -> None:
        self._open()
        self._tasks["pick_up"].defer(number=number, sent=sent)

    def work(self) -> None:
        print("Starting worker", flush=True)
        self._app.run_worker(concurrency=SLOTS, fetch_job_polling_interval=0.5)

    def fill(self, first: int, last: int) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(FILL, {"first": first, "last": last})

    def poll(self) -> None:
        self._take()

    def claim(self, many: int) -> int:
        return one_by_one(self._take, many)

    def remember(self, entity: int) -> list[object]:
        with psycopg.connect(self.url) as connection:
            found = connection.execute("SELECT id FROM procrastinate_jobs WHERE args->>'number' = %s", [str(entity)])
            return [key for (key,) in found]

    def cancel(self, entity: int, kept: list[object]) -> int:
        self._open()
        return sum(self._app.job_manager.cancel_job_by_id(key) for key in kept)

    def close(self) -> None:
        if self._opened:
            self._app.close()
        if self._worker:
            self._run(self._leave())
        self._run.close()

    def _open(self) -> None:
        """Callers that wait have a pool of their own, opened at the first call."""
        if not self._opened:
            self._app.open()
            self._opened = True

    def _take(self) -> bool:
        self._worker = self._worker or self._run(self._register())
        return self._run(self._fetching.job_manager.fetch_job(queues=None, worker_id=self._worker)) is not None

    async def _register(self) -> int:
        await self._fetching.open_async()
        return await self._fetching.job_manager.register_worker()

    async def _leave(self) -> None:
        await self._fetching.close_async()
