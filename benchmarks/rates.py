"""
Rates, on PostgreSQL: over many keys with tasks waiting for each, worked off by one embedded worker; how long it takes to begin
and count a group of them, with all keys open, and with nearly all braked; and how long a poll takes while these wait.
"""

from __future__ import annotations

import argparse
import json
import os
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from benchmarks.databases import server_version, site
from benchmarks.limits import work_off

GROUP = 200  # Tasks that begin together, each of another key.


def declare() -> None:
    """Declare what is measured: tasks of which each key has a rate, and a kind that has none."""
    from timeline import Rate, Timeline, task
    from timeline.registry import registry

    class Paced(Timeline):
        """Each key by itself."""

        entity = "benchmarks.Member"

        @task(rate=Rate("1000/h", by="id"), atomic=False)
        def visit(self, member: Any) -> None: ...

        @task(atomic=False)
        def free(self, member: Any) -> None: ...

    registry.register(Paced)


def fill(task_key: str, keys: int, each: int) -> None:
    """Have so many tasks wait for each key, mixed, as they come; in one statement, since there are many."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE IF NOT EXISTS bench_member (id integer PRIMARY KEY, email text NOT NULL, counter integer NOT NULL)"
        )
        cursor.execute(
            "INSERT INTO bench_member SELECT key, '', 0 FROM generate_series(1, %s) AS key ON CONFLICT DO NOTHING",
            [keys],
        )
        cursor.execute(
            """
            INSERT INTO timeline_scheduledtask (
                id, task_key, occurrence, revision, entity_label, entity_id, state, seq, priority, queue, nominal_at,
                scheduled_at, anchor, definition_hash, payload, attempt, failures, lost, max_attempts, worker, error,
                reason_code, reason, actor, created_at, limit_key, held_until
            )
            SELECT gen_random_uuid(), %s, number::text, 1, 'benchmarks.member', key::text, 'available', 0, 0,
                'default', now(), now() - (number * %s + key) * interval '1 millisecond', '', '', '{}', 0, 0, 0, 10, '', '', '',
                '', '', now(), '', ''
            FROM generate_series(1, %s) AS key, generate_series(1, %s) AS number
            """,
            [task_key, keys, keys, each],
        )
        cursor.execute("ANALYZE timeline_scheduledtask")


def brake_all(keys: int, but: int) -> None:
    """Brake the rates of nearly all keys for an hour."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO timeline_ratekey (key, starts, braked_until, kept_until)
            SELECT 'paced.visit:' || key, '[]', now() + interval '1 hour', now() + interval '1 day'
            FROM generate_series(%s, %s) AS key
            ON CONFLICT (key) DO UPDATE SET braked_until = excluded.braked_until
            """,
            [but + 1, keys],
        )
        cursor.execute("ANALYZE timeline_ratekey")


def groups(task_key: str, times: int) -> list[float]:
    """Begin, count and give back so many groups: milliseconds of each, up to where handlers would be entered."""
    from timeline.clocks import SteadyClock
    from timeline.engine.groups import begin_ready, look_ahead

    clock, took = SteadyClock("default"), []
    for _time in range(times):
        begun = perf_counter()
        attempts = begin_ready(
            task_key=task_key, priority=0, most=GROUP, clock=clock, using="default", worker="benchmark"
        )
        if not attempts:
            break
        look_ahead(attempts, clock=clock, using="default")
        took.append(1000 * (perf_counter() - begun))
    return took


def polls(times: int) -> list[float]:
    """Poll so many times: milliseconds of each."""
    from timeline.clocks import story_now
    from timeline.dispatch.claim import claim, is_anything_ready
    from timeline.dispatch.poll import stage

    took = []
    for _time in range(times):
        begun = perf_counter()
        now = story_now("default")
        stage(now=now, using="default")
        is_anything_ready(using="default")
        claim(now=now, using="default")
        took.append(1000 * (perf_counter() - begun))
    return took


def told(took: list[float]) -> dict[str, float]:
    """Median and worst."""
    return {"median": round(median(took), 1), "p99": round(quantiles(took, n=100)[-1], 1), "worst": round(max(took), 1)}


def clear() -> None:
    """Delete all tasks, as if they had never been."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE timeline_scheduledtask, timeline_logentry, timeline_ratekey CASCADE")


def measure(keys: int, each: int) -> dict[str, Any]:
    """Without a rate, with all keys open, and with nearly all of them braked."""
    from timeline.models import ScheduledTask

    declare()
    fill("paced.free", keys, each)
    of_free = groups("paced.free", 30)
    clear()
    fill("paced.free", keys, each)
    free, seconds = work_off()
    free_a_second = free / seconds
    clear()
    fill("paced.visit", keys, each)
    of_open = groups("paced.visit", 30)
    clear()
    fill("paced.visit", keys, each)
    ran, took = work_off()
    clear()
    brake_all(keys, keys // 100)
    fill("paced.visit", keys, 1)
    put_off = groups("paced.visit", keys // GROUP + 5)
    waiting = ScheduledTask.objects.filter(state="retryable").count()
    of_braked = polls(50)
    return {
        "keys": keys,
        "tasks": keys * each,
        "group_without_rate_ms": told(of_free),
        "group_of_open_keys_ms": told(of_open),
        "group_of_braked_keys_ms": told(put_off),
        "waiting_of_braked_keys": waiting,
        "poll_beside_them_ms": told(of_braked),
        "tasks_a_second_without_rate": round(free_a_second),
        "tasks_a_second": round(ran / took),
        "load": [round(number, 1) for number in os.getloadavg()],
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--each", type=int, default=3)
    options = parser.parse_args()
    with site():
        print(f"PostgreSQL {server_version()}")
        print(json.dumps(measure(options.keys, options.each), indent=2))


if __name__ == "__main__":
    main()
