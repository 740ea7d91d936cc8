"""Oban for Python: jobs in PostgreSQL, asynchronous workers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from uuid import uuid4

import psycopg
from oban import Oban, job
from oban._query import Query
from oban.cli import main
from oban.schema import install
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from benchmarks.peers import looping, mapped
from benchmarks.peers.adapter import LATER, Adapter, Setting, chunks

SLOTS = 50


@cache
def engine() -> AsyncEngine:
    """The host's own pool of connections, as large as that of the other jobs."""
    return create_async_engine(mapped.url_of(os.environ["BENCHMARK_DATABASE_URL"]), pool_size=10, max_overflow=0)


async def count_up(number: int) -> None:
    """Count the job's own entity up."""
    async with AsyncSession(engine()) as session:
        await session.execute(mapped.count_up(number))
        await session.commit()


nothing, entity, count, brief, long, pick_up = (
    job()(call) for call in (looping.nothing, count_up, looping.count, looping.brief, looping.long, looping.pick_up)
)
JOBS = {"nothing": nothing, "entity": entity, "count": count, "brief": brief, "long": long}
FILL = """
INSERT INTO oban_jobs (state, worker, args, scheduled_at)
SELECT 'scheduled', %(worker)s, jsonb_build_object('number', number / 10), timezone('UTC', now()) + interval '30 days'
FROM generate_series(%(first)s::int, %(last)s::int - 1) AS number
"""


class Peer(Adapter):
    """Its own ``oban start``."""

    title = "Oban (Python)"
    package = "oban"
    settings = (
        Setting(
            "queues",
            f"default:{SLOTS}",
            "claims and completions of a round go together, up to this many",
        ),
        Setting("entity, by the ORM", "SQLAlchemy", "it knows nothing of Django; asynchronous, with a pool of ten"),
        Setting("log-level", "WARNING", "a line for each job is not what is measured"),
    )
    slots = SLOTS
    ready = "oban.pro"
    gate = "oban_jobs"
    tables = ("oban_jobs",)
    completed = "SELECT count(*) FROM oban_jobs WHERE state = 'completed'"
    clear = "TRUNCATE oban_jobs"
    notes = "At least once; a job's writes and its completion commit apart. No log of steps beside the row."

    def __init__(self) -> None:
        super().__init__()
        self._run = looping.Loop()
        self._pool = self._run(Oban.create_pool(self.url))
        self._oban = Oban(pool=self._pool)
        self._query = Query(self._pool)

    def install(self) -> None:
        self._run(install(self._pool))

    def schedule_one(self, number: int) -> None:
        self._run(self._oban.enqueue(self._later(number)))

    def schedule_many(self, numbers: Iterable[int]) -> None:
        for some in chunks(numbers):
            self._run(self._oban.enqueue_many([self._later(number) for number in some]))

    def enqueue(self, job: str, numbers: Iterable[int]) -> None:
        for some in chunks(numbers):
            self._run(self._oban.enqueue_many([JOBS[job].new(number) for number in some]))

    def feed(self, number: int, sent: float) -> None:
        self._run(self._oban.enqueue(pick_up.new(number, sent)))

    def work(self) -> None:
        self.close()
        # Modules are named so that it does not look through all files for periodic jobs.
        given = [
            "--dsn",
            self.url,
            "--queues",
            f"default:{SLOTS}",
            "--cron-modules",
            __name__,
            "--log-level",
            "WARNING",
        ]
        main(["start", *given])

    def fill(self, first: int, last: int) -> None:
        with psycopg.connect(self.url) as connection:
            worker = nothing.new(0).worker
            connection.execute(FILL, {"worker": worker, "first": first, "last": last})

    def poll(self) -> None:
        self._run(self._query.stage_jobs(20_000, ["default"]))
        self._run(self._query.fetch_jobs(SLOTS, "default", "here", str(uuid4())))

    def claim(self, many: int) -> int:
        return len(self._run(self._query.fetch_jobs(many, "default", "here", str(uuid4()))))

    def remember(self, entity: int) -> list[object]:
        with psycopg.connect(self.url) as connection:
            found = connection.execute("SELECT id FROM oban_jobs WHERE args->>'number' = %s", [str(entity)])
            return [key for (key,) in found]

    def cancel(self, entity: int, kept: list[object]) -> int:
        return self._run(self._oban.cancel_many_jobs(kept))

    def close(self) -> None:
        self._run(self._pool.close())
        self._run.close()

    def _later(self, number: int) -> object:
        job = nothing.new(number)
        job.scheduled_at, job.state = datetime.now(UTC) + LATER, "scheduled"
        return job
