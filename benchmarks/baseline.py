"""
The baseline on SQLite: sign-ups by the site's own service, one transaction each, then all their tasks due.

Prints rows scheduled a second and tasks run a second. Figures of one machine at one moment: compare within one run only.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main(users: int) -> None:
    """Measure and print."""
    from django.core.management import call_command

    from project.accounts.services import sign_up
    from timeline.clocks import story_time
    from timeline.models import LogEntry, ScheduledTask
    from timeline.worker import Worker

    call_command("migrate", verbosity=0)
    begin = datetime.now(UTC).replace(microsecond=0)

    with story_time(lambda: begin):
        started = perf_counter()
        for number in range(users):
            sign_up(f"user{number}@example.com", "example.com", now=begin)
        signing_up = perf_counter() - started
    rows = ScheduledTask.objects.count()

    with story_time(lambda: begin + timedelta(days=40)):
        worker = Worker("default", "baseline")
        started = perf_counter()
        while worker.poll():
            pass
        running = perf_counter() - started
        # Follow-ups fall due days after their predecessor ended: a second drain.
    with story_time(lambda: begin + timedelta(days=80)):
        started = perf_counter()
        while worker.poll():
            pass
        running += perf_counter() - started

    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, one process")
    print(
        f"{users:,} sign-ups in {signing_up:.1f} s: {users / signing_up:,.0f} sign-ups/s, {rows / signing_up:,.0f} rows/s"
    )
    print(f"{worker.ran:,} tasks run in {running:.1f} s: {worker.ran / running:,.0f} tasks/s")
    print(
        f"{LogEntry.objects.count():,} log entries, every task completed: {not ScheduledTask.objects.open().exists()}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--users", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="timeline-baseline-") as folder:
        os.environ["DEMO_DIR"] = folder
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
        import django

        django.setup()
        main(arguments.users)
