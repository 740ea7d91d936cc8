"""
The list endpoints of the API at a million tasks on PostgreSQL: how long an answer takes and how many queries it needs.

Works in a database of its own, made and dropped, on the server that DATABASE_URL names or one that comes with a pip package.
Asked as staff who may view all, as a user with rows of their own, and as the owners of 33,000 and 252,000 entities, through
the whole site (sessions, permissions, serializers). Fails where the 95th percentile is over 300 ms or an answer needs more
than 12 queries.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from benchmarks.databases import server_url
from timeline import Timeline, task

NAME = "timeline_api_pages"
SLOWEST_MS, MOST_QUERIES = 300, 12

USERS = """
INSERT INTO accounts_user (password, is_superuser, email, website, is_active, is_staff, signed_up_at, trial_ends_at)
SELECT '!', false, 'user' || number || '@example.com', '', true, false, now(), now() + interval '30 days'
FROM generate_series(1, %(users)s) AS number
"""
RUNS = """
INSERT INTO timeline_timelinerun (id, timeline, entity_label, entity_id, key, params, started_at, end_reason)
SELECT gen_random_uuid(), 'trial', 'accounts.user', id::text, '', '{}', now(), '' FROM accounts_user
"""
# Ten tasks for each user, one kind each; most have ended, one in ten thousand was discarded; due on whole days of two years.
TASKS = """
INSERT INTO timeline_scheduledtask (
    id, run_id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash,
    payload, attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at, finished_at,
    entity_label, entity_id
)
SELECT gen_random_uuid(), run.id, kind.key, '', 1, kind.state, 0, 0, 'default', kind.due, kind.due, '', '',
    '{"plan": "pro"}', 0, 0, 0, 5, '', '', CASE WHEN kind.finished THEN 'done' ELSE '' END, '', '', now(),
    CASE WHEN kind.finished THEN kind.due END, run.entity_label, run.entity_id
FROM timeline_timelinerun AS run
CROSS JOIN generate_series(0, 9) AS number
CROSS JOIN LATERAL (SELECT
    CASE
        WHEN number = 0 THEN 'trial.expire'
        WHEN number = 1 THEN 'trial.remind'
        WHEN number = 2 AND run.entity_id::int %% 1000 = 0 THEN 'rare.task' || number
        ELSE 'trial.task' || number
    END AS key,
    CASE
        WHEN number = 0 THEN 'scheduled'
        WHEN number = 1 AND run.entity_id::int %% 1000 = 0 THEN 'discarded'
        ELSE 'completed'
    END AS state,
    number > 0 AS finished,
    date_trunc('day', now()) + ((run.entity_id::int * 7 + number * 31) %% 365) * interval '1 day'
        - CASE WHEN number > 0 THEN interval '1 year' ELSE interval '0' END AS due) AS kind
"""

# Entities of two owners and of everybody else: each with one task ahead, in a run, and one that has ended.
OWNED = """
INSERT INTO django_admin_log (action_time, user_id, object_repr, action_flag, change_message)
SELECT now(), %(owner)s, '', 1, '' FROM generate_series(1, %(count)s)
"""
OWNED_RUNS = """
INSERT INTO timeline_timelinerun (id, timeline, entity_label, entity_id, key, params, started_at, end_reason)
SELECT gen_random_uuid(), 'owned', 'admin.logentry', id::text, '', '{}', now(), '' FROM django_admin_log
"""
OWNED_TASKS = """
INSERT INTO timeline_scheduledtask (
    id, run_id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash,
    payload, attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at, finished_at,
    entity_label, entity_id
)
SELECT gen_random_uuid(), run.id, 'owned.' || kind.state, '', 1, kind.state, 0, 0, 'default', kind.due, kind.due, '', '', '{}',
    0, 0, 0, 5, '', '', CASE WHEN kind.state = 'completed' THEN 'done' ELSE '' END, '', '', now(),
    CASE WHEN kind.state = 'completed' THEN kind.due END, run.entity_label, run.entity_id
FROM timeline_timelinerun AS run
CROSS JOIN LATERAL (VALUES
    ('scheduled', now() + random() * interval '365 days'), ('completed', now() - random() * interval '365 days')
) AS kind (state, due)
WHERE run.timeline = 'owned'
"""
MANY = {"33,000 owned": 33_000, "252,000 owned": 252_000}


class Owned(Timeline):
    """About what has an owner of its own among the models that the site has."""

    entity = "admin.LogEntry"
    owner = "user"

    @task()
    def scheduled(self, entry: Any) -> None: ...


@contextmanager
def own_database(url: str) -> Iterator[str]:
    """Make the database and drop it."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(url, autocommit=True) as server:
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(NAME)))
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(NAME)))
    try:
        yield f"{url.rpartition('/')[0]}/{NAME}"
    finally:
        from django.db import connections

        connections.close_all()
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(NAME)))


def fill(users: int) -> None:
    """Make the rows."""
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(USERS, {"users": users})
        cursor.execute(RUNS)
        cursor.execute(TASKS, {})
        cursor.execute("VACUUM ANALYZE")


def fill_owned(owners: list[Any]) -> None:
    """Make entities, a third of them everybody else's, and their rows."""
    from django.db import connection

    with connection.cursor() as cursor:
        for owner, count in zip(owners, [*MANY.values(), sum(MANY.values()) // 2], strict=True):
            cursor.execute(OWNED, {"owner": owner.pk, "count": count})
        cursor.execute(OWNED_RUNS)
        cursor.execute(OWNED_TASKS)
        cursor.execute("VACUUM ANALYZE")


def questions(user: Any) -> dict[str, str]:
    """What is asked: a name, and the address."""
    return {
        "all": "tasks/",
        "all, latest first": "tasks/?ordering=-scheduled_at",
        "a hundred": "tasks/?limit=100",
        "in a state with many": "tasks/?state=completed",
        "in a state with few": "tasks/?state=discarded",
        "in a late state": "tasks/?state=scheduled",
        "in two states": "tasks/?state=scheduled&state=completed",
        "in two with few": "tasks/?state=discarded&state=retryable",
        "of a timeline in two": "tasks/?timeline=trial&state=scheduled&state=completed",
        "in no state there is": "tasks/?state=pending",
        "of a task": "tasks/?task=trial.remind",
        "of a late task": "tasks/?task=trial.expire",
        "of a rare task": "tasks/?task=rare.task2",
        "of a task in a state": "tasks/?task=trial.remind&state=discarded",
        "of a timeline": "tasks/?timeline=trial",
        "of a rare timeline": "tasks/?timeline=rare",
        "of no timeline": "tasks/?timeline=nothing",
        "due in a time": "tasks/?due_after=2026-01-01T00:00:00Z&due_before=2027-06-01T00:00:00Z",
        "due in a state": "tasks/?state=scheduled&due_after=2026-01-01T00:00:00Z",
        "an entity": f"entities/accounts.user/{user.pk}/tasks/",
        "a user": f"users/{user.pk}/tasks/",
        "mine": "me/tasks/",
    }


def measure(client: Any, address: str, times: int) -> tuple[float, int]:
    """Ask several times; each time on the next page, as long as there is one. Gives the 95th percentile in ms, and queries."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    took, most, page = [], 0, f"/api/v1/{address}"
    for _ in range(times):
        started = perf_counter()
        answer = client.get(page)
        took.append((perf_counter() - started) * 1000)
        if answer.status_code != 200:
            raise SystemExit(f"{page} was answered with {answer.status_code}: {answer.content!r}")
        page = answer.json().get("next") or page
    with CaptureQueriesContext(connection) as queries:
        client.get(page)
    most = len(queries)
    return sorted(took)[int(len(took) * 0.95) - 1], most


def main(tasks: int, times: int) -> bool:
    """Measure and print; gives whether all is within bounds."""
    from django.contrib.auth.models import Permission
    from django.db import connection
    from django.test import Client

    from project.accounts.models import User

    started = perf_counter()
    fill(tasks // 10)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), current_setting('server_version') FROM timeline_scheduledtask")
        count, version = cursor.fetchone()
    print(f"{count:,} tasks on PostgreSQL {version}, made in {perf_counter() - started:.0f} s; {times} answers each")
    user = User.objects.order_by("pk")[tasks // 20]
    staff = User.objects.create(
        email="staff@example.com", signed_up_at=user.signed_up_at, trial_ends_at=user.trial_ends_at
    )
    User.objects.filter(pk=staff.pk).update(is_staff=True)
    staff.user_permissions.set(Permission.objects.filter(codename="view_scheduledtask"))
    owners = list(User.objects.order_by("pk")[10:13])
    fill_owned(owners)
    good = True
    people = {"staff": staff, "user": user, **dict(zip(MANY, owners, strict=False))}
    for who, person in people.items():
        client = Client()
        client.force_login(person)
        for name, address in questions(user if person is staff else person).items():
            slowest, queries = measure(client, address, times)
            within = slowest <= SLOWEST_MS and queries <= MOST_QUERIES
            good = good and within
            print(f"{who:13}  {name:22} p95 {slowest:7.1f} ms  {queries:2} queries{'' if within else '  TOO MUCH'}")
    return good


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=40)
    arguments = parser.parse_args()
    with own_database(server_url()) as url:
        os.environ["BENCHMARK_DATABASE_URL"] = url
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
        import django

        django.setup()
        from timeline.registry import registry

        registry.register(Owned)
        within_bounds = main(arguments.tasks, arguments.times)
    sys.exit(0 if within_bounds else 1)
