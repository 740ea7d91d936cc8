"""
How fast Celery gets through due tasks that do nothing: on PostgreSQL, over Redis, with a poller as a process of its own.
With tasks that wait, how much of its time a worker spends in them.

Uses a database and queues of its own, and takes them away at the end. Figures of one machine at one moment.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from benchmarks.databases import server_version, site
from benchmarks.peers.jobs import BRIEF, LONG

ROOT = Path(__file__).resolve().parent.parent
PREFIX = f"timeline-benchmark-{os.getpid()}"
QUEUES = (f"{PREFIX}.default", f"{PREFIX}-poll")
PATIENCE = 600  # Seconds.
WARM_UP = 0.1  # Of the tasks: of a kind that is new, messages are small.
TASKS = {
    "nothing.plain": 0.0,
    "nothing.in_transaction": 0.0,
    "nothing.brief": BRIEF,
    "nothing.long": LONG,
}  # Seconds each.


class Nowhere:
    """A broker for polls that find nothing."""

    def connect(self) -> None:
        """Connects at once."""

    def send(self, batch: Any, *, using: str) -> None:
        """Is never called."""
        raise AssertionError(batch, using)


def empty_poll() -> str:
    """Time polls that find nothing, in this process."""
    from django.utils import timezone

    from timeline.dispatch.poll import dispatch

    took = []
    for _ in range(50):
        started = perf_counter()
        dispatch(sender=Nowhere(), now=timezone.now(), using="default")
        took.append((perf_counter() - started) * 1000)
    return f"{statistics.median(took):.1f} ms (median of 50; slowest {max(took):.1f} ms)"


def make_due(tasks: int, task_key: str) -> float:
    """Schedule so many tasks that are due, for a thousand people; give the seconds it took."""
    from django.db import transaction
    from django.utils import timezone

    from project.accounts.models import User
    from timeline.shortcuts import schedule

    now = timezone.now()
    people = User.objects.bulk_create(
        User(email=f"person{number}@example.com", signed_up_at=now, trial_ends_at=now) for number in range(1000)
    )
    started = perf_counter()
    for first in range(0, tasks, 500):
        with transaction.atomic():
            for number in range(first, min(first + 500, tasks)):
                schedule(task_key, people[number % len(people)], at=now - timedelta(seconds=1))
    return perf_counter() - started


@contextmanager
def process(folder: str, name: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module of Python until the end of the block."""
    with (Path(folder) / f"{name}.log").open("wb") as log:
        started = subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, stdout=log, stderr=log)  # noqa: S603
    try:
        yield started
    finally:
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(30)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


def inspect_workers(names: list[str]) -> dict[str, Any]:
    """Ask the workers how they are; those that are not up yet do not answer."""
    from celery import current_app

    return current_app.control.inspect(names, timeout=1).stats() or {}


def work_off(folder: str, workers: int, processes: int, tasks: int, each: float) -> None:
    """Start workers, then the poller, wait until nothing is open, and print how fast that went; tasks take ``each`` seconds."""
    from timeline.models import ScheduledTask

    names = [f"worker{number}@{PREFIX}" for number in range(1, workers + 1)]
    options = ("-Q", QUEUES[0], "-c", str(processes), "--without-gossip", "--without-mingle")
    with ExitStack() as stack:
        for name in names:
            command = ("celery", "-A", "project", "worker", *options, "-n", name)
            pid = stack.enter_context(process(folder, name.partition("@")[0], *command)).pid
            print(f"worker -c {processes}, pid {pid}", flush=True)
        wait_for(lambda: len(inspect_workers(names)) == workers)
        stack.enter_context(process(folder, "poller", "manage", "timeline_poll"))
        completed = ScheduledTask.objects.filter(state="completed")
        wait_for(lambda: completed.count() >= tasks * WARM_UP)
        started, early, waited = perf_counter(), completed.count(), spent()
        wait_for(lambda: not ScheduledTask.objects.open().exists())
        seconds = perf_counter() - started
        messages = sum(seen["total"].get("timeline.run", 0) for seen in inspect_workers(names).values())
    done = completed.filter(attempt=1).count()
    print(f"{done:,} of {tasks:,} tasks completed at the first attempt, {messages:,} messages")
    print(f"{done - early:,} of them, after a warm-up, in {seconds:.1f} s: {(done - early) / seconds:,.0f} tasks/s")
    if each:
        in_them, whole = spent() - waited, seconds * workers * processes
        least = (done - early) * each
        print(f"Tasks of {each * 1000:g} ms: {in_them / whole:.1%} of the workers' time was spent in them", end="")
        print(
            f" ({least / whole:.1%} if none took longer than that; they took {1000 * in_them / (done - early):.2f} ms)"
        )


def spent() -> float:
    """Seconds that the handlers took which have told so."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(result::float), 0) FROM timeline_scheduledtask WHERE jsonb_typeof(result) = 'number'"
        )
        return float(cursor.fetchone()[0])


def wait_for(condition: Callable[[], bool]) -> None:
    """Look ten times a second until it holds."""
    give_up = perf_counter() + PATIENCE
    while not condition():
        if perf_counter() > give_up:
            raise SystemExit(f"Nothing came of it in {PATIENCE} s. Is the broker the one in --broker?")
        sleep(0.1)


def remove_queues() -> None:
    """Take our queues away from the broker."""
    from celery import current_app

    with current_app.connection_for_write() as connection:
        channel = connection.default_channel
        for queue in QUEUES:
            current_app.amqp.queues[queue](channel).declare()  # What a channel has not seen it does not delete.
            channel.queue_purge(queue)
            channel.queue_delete(queue)


def main(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    from project.celery import app

    app.set_default()
    print(f"Python {platform.python_version()}, PostgreSQL {server_version()}, {os.cpu_count()} CPUs")
    print(f"Empty poll, nothing there: {empty_poll()}")
    seconds = make_due(arguments.tasks, arguments.task)
    print(f"{arguments.tasks:,} × {arguments.task} scheduled, {arguments.tasks / seconds:,.0f} a second")
    try:
        with tempfile.TemporaryDirectory(prefix="timeline-benchmark-") as folder:
            work_off(folder, arguments.workers, arguments.processes, arguments.tasks, TASKS[arguments.task])
    finally:
        remove_queues()
    print(f"Empty poll, {arguments.tasks:,} tasks completed: {empty_poll()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--task", choices=TASKS, default="nothing.plain")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--processes", type=int, default=1, help="of each worker, Celery's -c (default: %(default)s)")
    parser.add_argument("--broker", default=os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"))
    arguments = parser.parse_args()
    with site(QUEUE_PREFIX=PREFIX, BROKER_URL=arguments.broker):
        main(arguments)
