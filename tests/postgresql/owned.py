"""Very many plans and seats of a few owners, with tasks of each; and how many rows a call reads to tell of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from django.db import connection

from project.accounts.models import User
from timeline import Timeline, task

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
MANY = 3_000
TABLES = {"testapp_plan", "testapp_seat"}

PLANS = "INSERT INTO testapp_plan (user_id) SELECT %(owner)s FROM generate_series(1, %(count)s)"
SEATS = "INSERT INTO testapp_seat (id, plan_id) SELECT gen_random_uuid(), id FROM testapp_plan"
# Of each plan and each seat one task that is ahead, and one that has ended, in no order of their owners.
TASKS = """
INSERT INTO timeline_scheduledtask (
    id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash,
    payload, attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at, finished_at,
    entity_label, entity_id
)
SELECT gen_random_uuid(), entity.task_key, kind.state, 1, kind.state, 0, 0, 'default', kind.due, kind.due, '', '', '{}',
    0, 0, 0, 5, '', '', CASE WHEN kind.state = 'completed' THEN 'done' ELSE '' END, '', '', %(now)s,
    CASE WHEN kind.state = 'completed' THEN kind.due END, entity.label, entity.id
FROM (
    SELECT 'renewing.renew' AS task_key, 'testapp.plan' AS label, id::text FROM testapp_plan
    UNION ALL SELECT 'seating.free', 'testapp.seat', id::text FROM testapp_seat
) AS entity
CROSS JOIN LATERAL (VALUES
    ('scheduled', %(now)s::timestamptz + abs(hashtext(entity.id)) %% 525600 * interval '1 minute'),
    ('completed', %(now)s::timestamptz - abs(hashtext(entity.id)) %% 525600 * interval '1 minute')
) AS kind (state, due)
"""
OTHERS = """
INSERT INTO timeline_scheduledtask (
    id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash,
    payload, attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at, finished_at,
    entity_label, entity_id
)
SELECT gen_random_uuid(), 'other.task', number::text, 1, 'cancelled', 0, 0, 'default', %(now)s, %(now)s, '', '', '{}',
    0, 0, 0, 5, '', '', 'operator', '', '', %(now)s, %(now)s, 'testapp.order', number::text
FROM generate_series(1, 9000) AS number
"""
FILLED = "testapp_plan, testapp_seat, timeline_scheduledtask"
ANALYZE = f"ANALYZE {FILLED}"


class Renewing(Timeline):
    """About what has a number, and belongs to a user."""

    entity = "testapp.Plan"
    owner = "user"

    @task()
    def renew(self, plan): ...


class Seating(Timeline):
    """About what has a UUID, and belongs to a user by another model."""

    entity = "testapp.Seat"
    owner = "plan.user"

    @task()
    def free(self, seat): ...


def fill(cursor):
    """Let one own many, and another half as many."""
    for name, count in (("ada", MANY), ("ben", MANY // 2)):
        person = User.objects.create(email=f"{name}@example.com", signed_up_at=NOW, trial_ends_at=NOW)
        cursor.execute(PLANS, {"owner": person.pk, "count": count})
    cursor.execute(SEATS)
    cursor.execute(TASKS, {"now": NOW})
    cursor.execute(ANALYZE)
    # To read all of so small a table is as good as a thousand look-ups. Being told not to raises what a plan seems to cost, and
    # so must not call for compiling it: that changes no plan, and takes seconds.
    cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL jit = off")


def rows_read(node, tables):
    """How many rows of these tables a part of a plan, which has been run, has looked at."""
    here = (
        node.get("Actual Rows", 0)
        + node.get("Rows Removed by Filter", 0)
        + node.get("Rows Removed by Index Recheck", 0)
    )
    own = here * node["Actual Loops"] if node.get("Relation Name") in tables else 0
    return own + sum(rows_read(part, tables) for part in node.get("Plans", []))


def run_and_explain(sql, parameters):
    settings, _semicolon, asked = sql.rpartition(";\n")
    with connection.connection.transaction(force_rollback=True), connection.connection.cursor() as cursor:
        if settings:
            cursor.execute(settings)
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {asked}", parameters)
        [told] = cursor.fetchone()
    return (json.loads(told) if isinstance(told, str) else told)[0]["Plan"]  # psycopg2 gives the text.


def reads_of(call, tables=TABLES):
    """Statements that ask for the entities, or for other tables, each with how many rows of these it reads."""
    reads = []

    def look(execute, sql, parameters, many, context):
        if sql.startswith(("SELECT", "(SELECT", "WITH part_")) and any(table in sql for table in tables):
            reads.append((rows_read(run_and_explain(sql, parameters), tables), sql))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(look):
        call()
    return reads
