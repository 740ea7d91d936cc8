"""
Limits, on PostgreSQL: a limit of one over many keys with tasks waiting for each, worked off by one embedded worker; how long a
poll for a place takes, with all keys full and with none waiting; and how long a place is idle from one task to the next.
"""

from __future__ import annotations

import argparse
import json
import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from benchmarks.databases import server_version, site

WAIT = 20  # Tasks of one key, for the time between one and the next.


def declare() -> None:
    """Declare what is measured: tasks of which one a key may be under way."""
    from timeline import Limit, Timeline, task
    from timeline.registry import registry

    class Narrow(Timeline):
        """Each key by itself."""

        entity = "benchmarks.Member"

        @task(limit=Limit(1, by="id"), atomic=False)
        def visit(self, member: Any) -> None: ...

        @task(limit=1, atomic=False)
        def call(self, member: Any) -> None: ...

    registry.register(Narrow)


def fill(keys: int, each: int) -> None:
    """Have so many tasks wait for each key, as ``schedule`` writes them; in one statement, since there are many."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE bench_member (id integer PRIMARY KEY, email text NOT NULL, counter integer NOT NULL)"
        )
        cursor.execute("INSERT INTO bench_member SELECT key, '', 0 FROM generate_series(1, %s) AS key", [keys])
        cursor.execute(
            """
            INSERT INTO timeline_scheduledtask (
                id, task_key, occurrence, revision, entity_label, entity_id, state, seq, priority, queue, nominal_at,
                scheduled_at, anchor, definition_hash, payload, attempt, failures, lost, max_attempts, worker, error,
                reason_code, reason, actor, created_at, limit_key, held_until
            )
            SELECT gen_random_uuid(), 'narrow.visit', number::text, 1, 'benchmarks.member', key::text, 'available', 0, 0,
                'default', now(), now() - (number || ' seconds')::interval, '', '', '{}', 0, 0, 0, 10, '', '', '', '', '',
                now(), 'narrow.visit:' || key, 'attempt'
            FROM generate_series(1, %s) AS key, generate_series(1, %s) AS number
            """,
            [keys, each],
        )
        cursor.execute("ANALYZE timeline_scheduledtask")


def polls(task_key: str, now: datetime, times: int) -> list[float]:
    """Ask for a place so many times: milliseconds of each."""
    from timeline.features.limits.claims import begin_limited
    from timeline.features.limits.places import LimitedKind

    kind, took = LimitedKind(task_key, 1), []
    for _time in range(times):
        begun = perf_counter()
        begin_limited(kind, most=200, worker="benchmark", now=now, using="default")
        took.append(1000 * (perf_counter() - begun))
    return took


def work_off() -> tuple[int, float]:
    """Let an embedded worker run all that waits: how many tasks, in how many seconds."""
    from timeline.models import ScheduledTask
    from timeline.worker import Worker

    worker = Worker("default")
    thread = threading.Thread(target=worker.work, daemon=True)
    begun = perf_counter()
    thread.start()
    waiting = ScheduledTask.objects.open().order_by()
    while waiting[:1].exists():
        threading.Event().wait(0.2)
    took = perf_counter() - begun
    worker.stop()
    thread.join()
    return worker.ran, took


def hand_over() -> list[float]:
    """Let two embedded workers compete for one place: milliseconds from the end of each task to the start of the next."""
    from benchmarks.models import Member
    from timeline.models import ScheduledTask
    from timeline.shortcuts import schedule
    from timeline.worker import Worker

    workers = [Worker("default", name) for name in ("one", "two")]
    threads = [threading.Thread(target=worker.work, daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    for member in Member.objects.order_by("id")[:WAIT]:
        schedule("narrow.call", member, at=datetime.now(UTC) - timedelta(seconds=1))
    tasks = ScheduledTask.objects.filter(task_key="narrow.call")
    while tasks.open().exists():
        threading.Event().wait(0.1)
    for worker in workers:
        worker.stop()
    for thread in threads:
        thread.join()
    times = sorted(tasks.values_list("started_at", "finished_at"))
    return [1000 * (start - end).total_seconds() for (_start, end), (start, _end) in pairwise(times) if start and end]


def measure(keys: int, each: int) -> dict[str, Any]:
    """Fill, poll, and work off."""
    from django.db import connection

    from timeline.models import ScheduledTask

    declare()
    now = datetime.now(UTC)
    empty = polls("narrow.visit", now, 50)
    fill(keys, each)
    filled = polls("narrow.visit", now, keys // 200 + 1)
    held = ScheduledTask.objects.filter(slot__gt=0).count()
    full = polls("narrow.visit", now, 50)
    with connection.cursor() as cursor:  # As if their worker had died.
        cursor.execute(
            "UPDATE timeline_scheduledtask SET state = 'retryable', slot = 0, lease_expires_at = NULL, attempt = 0,"
            " reason_code = 'released' WHERE slot > 0"
        )
    ran, took = work_off()
    with connection.cursor() as cursor:  # As PostgreSQL does by itself within a minute.
        cursor.execute("VACUUM ANALYZE timeline_scheduledtask")
    between = hand_over()
    return {
        "keys": keys,
        "waiting": keys * each,
        "polls_to_reach_each_key": len(filled) if held == keys else None,
        "poll_ms": {"median": round(median(filled), 1), "p99": round(quantiles(filled, n=100)[-1], 1)},
        "poll_of_full_keys_ms": round(median(full), 1),
        "empty_poll_ms": round(median(empty), 2),
        "tasks_a_second": round(ran / took),
        "hand_over_ms": {"median": round(median(between), 1), "p90": round(quantiles(between, n=10)[-1], 1)},
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--each", type=int, default=10)
    options = parser.parse_args()
    with site():
        print(f"PostgreSQL {server_version()}")
        print(json.dumps(measure(options.keys, options.each), indent=2))


if __name__ == "__main__":
    main()
