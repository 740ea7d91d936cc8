"""How PostgreSQL finds jobs in a table that was filled at once, and of which its planner knows nothing yet."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

pytestmark = [pytest.mark.django_db, pytest.mark.only_postgresql, pytest.mark.plans]
JOBS = 3000


@pytest.fixture
def filled(server):
    """Jobs of one queue, none of them in the statistics."""
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE timeline_scheduledtask CASCADE")  # Its statistics are forgotten with it.
    for _each in range(JOBS // 1000):
        server.post("v1/jobs/batch", {"jobs": [{"type": "a", "args": [], "options": {"queue": "full"}}] * 1000}, 201)
    return server


def read_in_vain(statements):
    """The most rows that one of these statements read and left out, and that one."""
    found = [(0, "")]
    for statement in statements:
        if not statement["sql"].startswith("SELECT") or "timeline_scheduledtask" not in statement["sql"]:
            continue
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, COSTS OFF) {statement['sql']}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
        sorts = [int(rows) for rows in re.findall(r"(?:Scan|Sort).*actual time=\S+ rows=(\d+)", plan)]
        found += [(int(rows), plan) for rows in re.findall(r"Rows Removed by Filter: (\d+)", plan)]
        found += [(rows, plan) for rows in sorts]
    return max(found)


class TestFilledTable:
    def test_is_not_read_by_a_fetch(self, filled):
        with CaptureQueriesContext(connection) as found:
            assert len(filled.fetch("full", count=10)) == 10
            assert filled.fetch("other") == []

        most, plan = read_in_vain(found.captured_queries)
        assert most <= 20, plan

    def test_is_not_read_by_an_outcome(self, filled):
        [job] = filled.fetch("full")

        with CaptureQueriesContext(connection) as found:
            filled.ack(job["id"])

        most, plan = read_in_vain(found.captured_queries)
        assert most <= 20, plan

    def test_is_not_read_for_leases_that_ran_out(self, filled):
        for _each in range(5):
            filled.fetch("full", count=100, worker_id="alive")

        with CaptureQueriesContext(connection) as found:
            filled.fetch("other")

        most, plan = read_in_vain(found.captured_queries)
        assert most <= 20, plan
