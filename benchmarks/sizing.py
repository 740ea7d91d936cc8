"""
How much room the rows take, on PostgreSQL: trials lived from sign-up to their last task, then the size of each table.

Every row is written by the operations that write it in life, as with Celery: staged, claimed, run, logged.
"""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.databases import server_version, site

PER_YEAR = (1_000_000, 10_000_000, 100_000_000)
DAYS = (26, 31, 33, 34)  # What the site's trial does falls due on these; the last is to spare.


class Size(NamedTuple):
    """Rows of a table, and bytes: of the rows, of what is stored beside them (TOAST, maps), of the indexes."""

    rows: int
    heap: int
    beside: int
    indexes: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.heap + self.beside + self.indexes


class Here:
    """The way to the broker, cut short: what is sent is run at once, in this process."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def connect(self) -> None:
        """There is nothing to connect to."""

    def send(self, batch: Any, *, using: str) -> None:
        """Run it."""
        from timeline.engine.groups import run

        for task_id in batch.task_ids:
            run(
                task_ids=[task_id], token=batch.token, clock=lambda: self.now, using=using, worker="benchmark.example:1"
            )


def live(trials: int, begin: datetime) -> None:
    """Let people sign up through the site's service, and run all that their trial brings."""
    from project.accounts.services import sign_up
    from timeline.clocks import story_time

    with story_time(lambda: begin):
        for number in range(trials):
            sign_up(f"person{number}@example.com", "site.example.com", now=begin)
    for day in DAYS:
        run_due(begin + timedelta(days=day))


def run_due(now: datetime) -> None:
    """Run what is due by then, and what follows at once."""
    from timeline.clocks import story_time
    from timeline.dispatch.poll import dispatch

    with story_time(lambda: now):
        while dispatch(sender=Here(now), now=now, using="default").sent:
            pass


def measure() -> dict[str, Size]:
    """Tell the size of each of our tables."""
    from django.db import connection

    from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun

    found = {}
    for model in (Event, TimelineRun, ScheduledTask, LogEntry):
        table = model._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_relation_size(%s), pg_table_size(%s) - pg_relation_size(%s), pg_indexes_size(%s)",
                [table] * 4,
            )
            found[model.__name__] = Size(model._default_manager.count(), *cursor.fetchone())
    return found


def vacuum(how: str) -> None:
    """Clear away what updates left behind."""
    from django.db import connection

    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            if table.startswith("timeline_"):
                cursor.execute(f"VACUUM ({how}) {table}")


def show(title: str, sizes: dict[str, Size]) -> float:
    """Print bytes a row; give bytes a task, with its share of everything."""
    print(f"\n{title}: bytes a row")
    print(f"{'':15}{'rows':>9}{'row':>7}{'beside':>8}{'indexes':>9}{'all':>7}")
    for name, size in sizes.items():
        each = [part / size.rows for part in (size.heap, size.beside, size.indexes, size.total)]
        print(f"{name:15}{size.rows:9,}{each[0]:7.0f}{each[1]:8.0f}{each[2]:9.0f}{each[3]:7.0f}")
    return sum(size.total for size in sizes.values()) / sizes["ScheduledTask"].rows


def main(trials: int) -> None:
    """Write, measure, print."""
    from timeline.models import ScheduledTask

    started = perf_counter()
    live(trials, datetime(2026, 3, 1, 9, 0, tzinfo=UTC))
    tasks = ScheduledTask.objects
    print(f"PostgreSQL {server_version()}")
    print(f"{trials:,} trials, {tasks.count():,} tasks, written in {perf_counter() - started:.0f} s")
    print(f"Every task completed: {not tasks.exclude(state='completed').exists()}")
    vacuum("ANALYZE")
    written = show("As written, after VACUUM", measure())
    vacuum("FULL, ANALYZE")
    packed = show("Packed by VACUUM FULL", measure())
    print(f"\nA task with its share of run, event and log: {written:,.0f} bytes, packed {packed:,.0f}")
    for number in PER_YEAR:
        print(f"{number:>12,} tasks a year: {number * written / 1e9:8,.1f} GB, packed {number * packed / 1e9:8,.1f} GB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--trials", type=int, default=2_000)
    arguments = parser.parse_args()
    os.environ["PGOPTIONS"] = "-c synchronous_commit=off"  # Room is measured here, not time.
    with site():
        main(arguments.trials)
