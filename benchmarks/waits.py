"""
Waits, on PostgreSQL: what an unrelated event costs beside many tasks that wait, how fast many are waked, and how long it is
from an event to the handler that it wakes, in an embedded worker.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from benchmarks.databases import server_version, site

ASKED = 1000  # Events of which each is timed.
WAKED = 10_000  # At once.
EACH = 200  # Events of which one wakes a handler, twenty a second.
PAUSE = 0.05  # Seconds from one to the next.

entered: dict[int, float] = {}  # Member → when its handler was entered, by ``time.time()``.


def declare() -> None:
    """Declare tasks that wait for an event of their entity."""
    from timeline import Timeline, task, wait_for
    from timeline.registry import registry

    class Waiting(Timeline):
        """Waits for a payment."""

        entity = "benchmarks.Member"
        starts_on = "joined"

        @task(wait_for("paid", within=timedelta(days=30)), atomic=False)
        def go(self, member: Any) -> None:
            """Tell when it was entered."""
            entered[member.pk] = time.time()

    registry.register(Waiting)


def fill(members: int) -> None:
    """Make so many, and a thousand more who wait for nothing."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE bench_member (id integer PRIMARY KEY, email text NOT NULL, counter integer NOT NULL)"
        )
        cursor.execute(
            "INSERT INTO bench_member SELECT key, '', 0 FROM generate_series(1, %s) AS key", [members + ASKED]
        )
        cursor.execute("VACUUM ANALYZE")


def emit_each(others: list[Any]) -> float:
    """Emit an event of each that nobody waits for: milliseconds, the median."""
    from timeline.shortcuts import emit

    took = []
    for other in others:
        begun = perf_counter()
        emit("seen", other)
        took.append(1000 * (perf_counter() - begun))
    return median(took)


@contextmanager
def at_work() -> Iterator[None]:
    """Have an embedded worker beside."""
    from timeline.worker import Worker

    worker = Worker("default")
    thread = threading.Thread(target=worker.work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join()


def latencies(members: list[Any]) -> list[float]:
    """Emit what wakes one after the other: milliseconds from just before each event until its handler was entered."""
    from timeline.shortcuts import emit

    sent = {}
    with at_work():
        time.sleep(1)
        for member in members:
            sent[member.pk] = time.time()
            emit("paid", member)
            time.sleep(PAUSE)
        give_up = time.monotonic() + 60
        while len(entered) < len(members) and time.monotonic() < give_up:
            time.sleep(0.1)
    return [1000 * (entered[pk] - at) for pk, at in sent.items() if pk in entered]


def measure(waits: int) -> dict[str, Any]:
    """Fill, emit, wake."""
    from django.db import connection

    from benchmarks.models import Member
    from timeline.models import ScheduledTask
    from timeline.shortcuts import emit_many

    declare()
    fill(waits)
    others = list(Member.objects.filter(pk__gt=waits).order_by("pk"))
    emit_each(others)  # What is asked once a process is asked here.
    alone = emit_each(others)
    emit_many("joined", Member.objects.filter(pk__lte=waits))
    with connection.cursor() as cursor:  # As PostgreSQL does by itself within a minute.
        cursor.execute("VACUUM ANALYZE")
    beside = emit_each(others)
    took = latencies(list(Member.objects.filter(pk__lte=waits).order_by("-pk")[:EACH]))
    begun = perf_counter()
    emit_many("paid", Member.objects.filter(pk__lte=WAKED))
    seconds = perf_counter() - begun
    waked = ScheduledTask.objects.filter(task_key="waiting.go", reason_code="event").count()
    return {
        "waiting": waits,
        "emit_ms": {"nobody_waits": round(alone, 2), "beside": round(beside, 2), "ratio": round(beside / alone, 3)},
        "waked": waked,
        "waked_a_second": round(min(WAKED, waits) / seconds),
        "event_to_handler_ms": {
            "of": len(took),
            "median": round(median(took), 1),
            "p99": round(quantiles(took, n=100)[-1], 1),
        },
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waits", type=int, default=100_000)
    options = parser.parse_args()
    with site():
        print(f"PostgreSQL {server_version()}")
        print(json.dumps(measure(options.waits), indent=2))


if __name__ == "__main__":
    main()
