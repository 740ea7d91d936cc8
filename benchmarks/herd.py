"""
A herd: 100,000 tasks due in the same second, claimed by a poller and worked off by Celery over Redis, on PostgreSQL.

With --snapshot, a steady load instead, while another session holds an old snapshot, so that nothing dead is cleared away.
Prints how long claims take in the first and in the last fifth, and the memory of poller and workers. Uses a database and queues
of its own. Figures of one machine at one moment.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from statistics import median, quantiles
from time import perf_counter, sleep
from typing import Any

import psycopg

from benchmarks.databases import server_version, site
from benchmarks.throughput import PREFIX, QUEUES, inspect_workers, process, remove_queues, wait_for

FEED_EVERY = 0.1  # Seconds.
INSERT = """
INSERT INTO timeline_scheduledtask (
    id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash, payload,
    attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at, entity_label, entity_id
)
SELECT id, 'nothing.plain', id::text, 1, 'scheduled', 0, 0, 'default', due, due, '', '', '{}', 0, 0, 0, 5, '', '', '', '', '',
    now(), 'accounts.user', 1 + number %% 100
FROM generate_series(1, %(rows)s) AS number
CROSS JOIN LATERAL (SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
    || '7' || substr(md5(random()::text || number), 1, 19))::uuid AS id, now() + %(ahead)s AS due) AS made
"""


class Claims:
    """Times claims that take something."""

    def __init__(self, claim: Callable[..., list[Any]]) -> None:
        self.took: list[float] = []
        self.sizes: list[int] = []
        self._claim = claim

    def __call__(self, **asked: Any) -> list[Any]:
        """Claim."""
        started = perf_counter()
        batches = self._claim(**asked)
        if batches:
            self.took.append((perf_counter() - started) * 1000)
            self.sizes.append(sum(len(batch.task_ids) for batch in batches))
        return batches

    def __str__(self) -> str:
        fifth = max(len(self.took) // 5, 1)
        parts = {"first fifth": self.took[:fifth], "last fifth": self.took[-fifth:], "all": self.took}
        said = [f"{name} {median(took):.1f} / {_p95(took):.1f} ms" for name, took in parts.items()]
        return f"{len(self.took)} claims of {median(self.sizes):.0f} rows, median / p95: {', '.join(said)}"


def _p95(took: list[float]) -> float:
    return quantiles(took, n=20)[-1] if len(took) > 1 else took[0]


def memory(pid: int) -> int:
    """Resident memory of a process and its children, in MB."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=True).stdout  # noqa: S607
    rows = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return sum(rss for own, parent, rss in rows if pid in (own, parent)) // 1024


@contextmanager
def old_snapshot(url: str) -> Iterator[None]:
    """Let another session look at the database as it is now."""
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM timeline_scheduledtask")
        yield


@contextmanager
def feeding(url: str, rate: int) -> Iterator[None]:
    """Let so many tasks a second fall due."""
    ended = threading.Event()

    def feed() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not ended.wait(FEED_EVERY):
                connection.execute(INSERT, {"rows": int(rate * FEED_EVERY), "ahead": "1 second"})

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def poll_until(is_over: Callable[[], bool], worker: int) -> Claims:
    """Poll as ``timeline_poll`` does; print memory at the beginning and at the end."""
    from timeline.dispatch import poll
    from timeline.tasks.broker import CelerySender
    from timeline.worker import Poller

    claims = Claims(poll.claim)
    poll.claim = claims  # type: ignore[assignment]
    poller = Poller("default", CelerySender(), "herd")
    pause = poller.step()
    started = [memory(os.getpid()), memory(worker)]
    while not is_over():
        sleep(pause.total_seconds())
        pause = poller.step()
    print(claims)
    print(f"Memory, MB: poller {started[0]}, at the end {memory(os.getpid())}; workers {started[1]}, {memory(worker)}")
    return claims


def main(arguments: argparse.Namespace, url: str) -> None:
    """Fill, measure and print."""
    from django.utils import timezone

    from project.accounts.models import User
    from project.celery import app
    from timeline.models import ScheduledTask

    app.set_default()
    now = timezone.now()
    User.objects.bulk_create(User(email=f"{n}@example.com", signed_up_at=now, trial_ends_at=now) for n in range(100))
    print(f"PostgreSQL {server_version()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    name = f"worker@{PREFIX}"
    celery = ("celery", "-A", "project", "worker", "-Q", QUEUES[0], "-c", str(arguments.processes), "-n", name)
    with tempfile.TemporaryDirectory() as folder, process(folder, "worker", *celery) as worker:
        wait_for(lambda: len(inspect_workers([name])) == 1)
        begun = perf_counter()
        if arguments.snapshot:
            held = nullcontext() if arguments.snapshot == "none" else old_snapshot(url)
            with held, feeding(url, arguments.rate):
                poll_until(lambda: perf_counter() - begun > arguments.seconds, worker.pid)
        else:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(INSERT, {"rows": arguments.rows, "ahead": "0 seconds"})
            begun = perf_counter()
            poll_until(lambda: not ScheduledTask.objects.open().exists(), worker.pid)
        done = ScheduledTask.objects.filter(state="completed", attempt=1).count()
        seconds = perf_counter() - begun
        print(f"{done:,} of {ScheduledTask.objects.count():,} tasks completed in {seconds:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2, help="of the worker, Celery's -c (default: %(default)s)")
    parser.add_argument("--snapshot", choices=["held", "none"], help="steady load, with an old snapshot or without")
    parser.add_argument("--rate", type=int, default=100, help="tasks a second (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--broker", default=os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"))
    given = parser.parse_args()
    with site(QUEUE_PREFIX=PREFIX, BROKER_URL=given.broker) as database:
        try:
            main(given, database)
        finally:
            remove_queues()
