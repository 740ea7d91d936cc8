"""
The lists of the API for the owners of 33,000 and 252,000 entities, on SQLite: how long an answer takes, and how many queries.

Works in a file of its own, which is deleted. Each entity has a task that is ahead and one that has ended; a third of them are
everybody else's. Asked as in ``api_pages``. Fails where the 95th percentile is over 300 ms, an answer needs more than 12
queries, or is not 200.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from sqlite3 import sqlite_version
from time import perf_counter
from typing import Any

from benchmarks.api_pages import MANY, MOST_QUERIES, SLOWEST_MS, Owned, measure, questions

USERS = """
INSERT INTO accounts_user (password, is_superuser, email, website, is_active, is_staff, signed_up_at, trial_ends_at)
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < %(count)s)
SELECT '!', false, 'user' || n || '@example.com', '', true, false, datetime('now'), datetime('now', '+30 days') FROM number
"""
ENTITIES = """
INSERT INTO django_admin_log (action_time, user_id, object_repr, action_flag, change_message)
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < %(count)s)
SELECT datetime('now'), %(owner)s, '', 1, '' FROM number
"""
RUNS = """
INSERT INTO timeline_timelinerun (id, timeline, entity_label, entity_id, key, params, started_at, end_reason)
SELECT lower(hex(randomblob(16))), 'owned', 'admin.logentry', CAST(id AS TEXT), '', '{}', datetime('now'), ''
FROM django_admin_log
"""
TASKS = """
INSERT INTO timeline_scheduledtask (
    id, run_id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash,
    payload, attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at, finished_at,
    entity_label, entity_id
)
SELECT lower(hex(randomblob(16))), id, 'owned.' || state, '', 1, state, 0, 0, 'default', due, due, '', '', '{}', 0, 0, 0, 5, '',
    '', CASE WHEN state = 'completed' THEN 'done' ELSE '' END, '', '', datetime('now'),
    CASE WHEN state = 'completed' THEN due END, entity_label, entity_id
FROM (
    SELECT *, datetime('now', '+' || (abs(random()) %% 525600) || ' minutes') AS due FROM timeline_timelinerun
    CROSS JOIN (SELECT 'scheduled' AS state)
    UNION ALL
    SELECT *, datetime('now', '-' || (abs(random()) %% 525600) || ' minutes') AS due FROM timeline_timelinerun
    CROSS JOIN (SELECT 'completed' AS state)
)
"""


def fill() -> list[Any]:
    """Make the rows; give the owners of many."""
    from django.core.management import call_command
    from django.db import connection

    from project.accounts.models import User

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(USERS, {"count": 1000})
        owners = list(User.objects.order_by("pk")[10:13])
        for owner, count in zip(owners, [*MANY.values(), sum(MANY.values()) // 2], strict=True):
            cursor.execute(ENTITIES, {"owner": owner.pk, "count": count})
        cursor.execute(RUNS)
        cursor.execute(TASKS, {})
        cursor.execute("ANALYZE")
    return owners


def main(times: int) -> bool:
    """Measure and print; gives whether all is within bounds."""
    from django.db import connection
    from django.test import Client

    started = perf_counter()
    owners = fill()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM timeline_scheduledtask")
        [count] = cursor.fetchone()
    made = perf_counter() - started
    print(f"{count:,} tasks on SQLite {sqlite_version}, made in {made:.0f} s; {times} answers each")
    good = True
    for who, owner in zip(MANY, owners, strict=False):
        client = Client()
        client.force_login(owner)
        for name, address in questions(owner).items():
            slowest, queries = measure(client, address, times)
            within = slowest <= SLOWEST_MS and queries <= MOST_QUERIES
            good = good and within
            print(
                f"{who:13}  {name:22} p95 {slowest:7.1f} ms  {queries:2} queries{'' if within else '  TOO MUCH'}",
                flush=True,
            )
    return good


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--times", type=int, default=40)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="timeline-benchmark-") as folder:
        os.environ["BENCHMARK_DATABASE_URL"] = f"sqlite:///{Path(folder) / 'owned.sqlite3'}"
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
        import django

        django.setup()
        from timeline.registry import registry

        registry.register(Owned)
        within_bounds = main(arguments.times)
    sys.exit(0 if within_bounds else 1)
