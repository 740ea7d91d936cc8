"""Plans: what is asked of many entities looks each of them up by itself, also with stale statistics, at 50,000 rows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection

from tests.postgresql.plans import around_tests
from timeline.dialects import POSTGRESQL
from timeline.models import TimelineRun

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ROWS = 50_000
TABLES = "timeline_timelinerun, timeline_event"
KNOWN = f"ANALYZE {TABLES}"

FILL_RUNS = """
INSERT INTO timeline_timelinerun (id, entity_label, entity_id, timeline, key, params, started_at, end_reason)
SELECT gen_random_uuid(), 'accounts.user', number::text, 'trial', '', '{}', %(now)s, ''
FROM generate_series(1, %(rows)s) AS number
"""
FILL_EVENTS = """
INSERT INTO timeline_event (id, entity_label, entity_id, name, key, payload, actor, occurred_at, recorded_at)
SELECT gen_random_uuid(), 'accounts.user', number::text, 'user.created', 'sign-up', '{}', '', %(now)s, %(now)s
FROM generate_series(1, %(rows)s) AS number
"""
WHOSE = {"label": "accounts.user", "ids": ["4711", "4712", "4713"], "key": ""}

# Statement → its parameters.
QUESTIONS = {
    "end_open_runs": WHOSE | {"timelines": ["trial", "care"], "now": NOW, "code": "exit", "reason": "paid"},
    "with_run": WHOSE | {"timeline": "trial", "ended": True},
    "known_events": WHOSE | {"labels": ["accounts.user"] * 3, "name": "user.created", "key": "sign-up"},
}


@pytest.fixture(scope="module", params=["fresh", "stale"])
def filled(request, django_db_setup, django_db_blocker):
    """Tables of that many rows, whose statistics know of them, or know empty tables."""

    def fill(cursor):
        if request.param == "stale":
            cursor.execute(KNOWN)
        for filling in (FILL_RUNS, FILL_EVENTS):
            cursor.execute(filling, {"now": NOW, "rows": ROWS})
        if request.param == "fresh":
            cursor.execute(KNOWN)

    with around_tests(django_db_blocker, TABLES, fill):
        yield request.param


def plan_of(sql, parameters):
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}", parameters)
        return "\n".join(line for [line] in cursor.fetchall())


def looked_up_one_by_one(plan):
    conditions = [line for line in plan.splitlines() if "Index Cond" in line]
    return any("entity_id" in line and "entity.id" in line for line in conditions) and "Seq Scan" not in plan


@pytest.mark.usefixtures("filled")
class TestPlans:
    @pytest.mark.parametrize("keyed", [True, False])
    def test_look_each_entity_up_by_itself(self, keyed):
        for name, parameters in QUESTIONS.items():
            given = parameters if keyed or name != "end_open_runs" else parameters | {"key": None}

            plan = plan_of(POSTGRESQL.sql(name), given)

            assert looked_up_one_by_one(plan), f"{name}: {plan}"

    def test_find_the_runs_of_a_timeline_by_their_own_index(self):
        """It is by expressions, lest the questions above be looked for in it."""
        runs = TimelineRun.objects.of_timeline("trial")

        for asked in (runs.still(), runs.ended_since(NOW)):
            assert "timeline_run_of_timeline" in asked.values("pk")[:1001].explain()

    def test_find_the_open_runs_of_a_timeline_in_the_order_of_their_ids(self, filled):
        """Of many, no more are read than are asked for; of one that has few, or seems to have few, none of the others."""
        plan = TimelineRun.objects.open_of_timeline("trial")[:2001].explain()
        of_few = TimelineRun.objects.open_of_timeline("care")[:2001].explain()

        assert filled == "stale" or ("timeline_run_open_of_timeline" in plan and "Sort" not in plan), plan
        for one in (plan, of_few):
            assert "timeline_run_open_of_timeline" in one or "timeline_run_of_timeline" in one, one

    def test_find_the_latest_runs_of_machines_by_their_own_index(self):
        """There are none: of all that are no machine's, none is read."""
        plan = TimelineRun.objects.of_machines().order_by("-pk")[:20].explain()

        assert "timeline_run_of_machine" in plan, plan
        assert "Sort" not in plan, plan

    def test_find_the_timelines_there_are_by_the_same_index(self):
        """From each to the next one, however many runs it has."""
        asked = POSTGRESQL.sql("timelines_there")
        plan = plan_of(f"(ANALYZE, COSTS OFF, TIMING OFF) {asked}", {})  # Else it leaves out what is asked row by row.

        assert plan.count("using timeline_run_of_timeline") == 2, plan
        assert "Seq Scan" not in plan, plan

    def test_are_told_apart_from_a_bad_one(self):
        """A list in the plain form: these tests can fail."""
        plan = plan_of("SELECT id FROM timeline_event WHERE actor = ANY(%(ids)s)", WHOSE)

        assert not looked_up_one_by_one(plan)
