"""
Plans of polls and workers beside an old snapshot, for which PostgreSQL keeps all entries of its indexes: what they read does
not grow with what is done. Here all is one transaction, whose dead rows are kept as well.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection

from tests.postgresql.plans import plans_made_by
from timeline.dispatch.claim import claim
from timeline.dispatch.poll import stage_and_tell
from timeline.dispatch.worker_signs import extend_leases
from timeline.engine.attempts import still_ours
from timeline.engine.groups import begin_ready
from timeline.store import floors
from timeline.store.poll_queries import probe_lost
from timeline.store.task_key_stats import ready_kinds

pytestmark = [pytest.mark.django_db, pytest.mark.only_postgresql, pytest.mark.plans]

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
KEY = "trial.remind"
PAGES = "EXPLAIN (ANALYZE, BUFFERS, TIMING off, COSTS off)"

DUE = """
INSERT INTO timeline_scheduledtask (
    id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash, payload,
    attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at, entity_label, entity_id
)
SELECT gen_random_uuid(), 'trial.remind', gen_random_uuid()::text, 1, 'scheduled', 0, 0, 'default', moment, moment, '', '',
    '{}', 0, 0, 0, 5, '', '', '', '', '', %(now)s, '', ''
FROM generate_series(1, %(rows)s) AS number
CROSS JOIN LATERAL (SELECT %(at)s + number * interval '1 ms' AS moment) AS times
"""
DONE = (
    "UPDATE timeline_scheduledtask SET state = 'available'",
    "UPDATE timeline_scheduledtask SET state = 'active', lease_expires_at = clock_timestamp() - interval '1 hour', attempt = 1",
    "UPDATE timeline_scheduledtask SET state = 'completed', lease_expires_at = NULL, finished_at = now(), reason_code = 'done'",
)


@pytest.fixture(autouse=True)
def _slow(monkeypatch):
    """Let each look count as slow, so that a floor is kept."""
    monkeypatch.setattr(floors, "SLOW", 0.0)
    monkeypatch.setattr(floors, "MANY", 0)
    monkeypatch.setattr(floors, "SHARE", 1e9)


def fill(done):
    floors.look_anew(using="default")
    connection.check_constraints()
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE timeline_scheduledtask CASCADE")
        cursor.execute(DUE, {"rows": done, "at": NOW - timedelta(days=1), "now": NOW})
        for moved in DONE:
            cursor.execute(moved)
        cursor.execute(DUE, {"rows": 1000, "at": NOW - timedelta(minutes=1), "now": NOW})
        cursor.execute("ANALYZE timeline_scheduledtask")


def look():
    stage_and_tell(limit=100, now=NOW, using="default")
    [ready] = ready_kinds([KEY], now=NOW, using="default").values()
    started = begin_ready(
        task_key=KEY, priority=0, most=20, since=ready.place, clock=lambda: NOW, using="default", worker="w"
    )
    claim(limit=20, now=NOW, using="default")
    probe_lost(using="default")
    return started


def pages_of(call):
    """How many pages each statement about tasks reads."""
    plans = plans_made_by(call, explain=PAGES)
    found = [re.search(r"Buffers: shared hit=(\d+)", plan) for plan in plans]
    return [int(each[1]) if each else 0 for each in found]


class TestLooks:
    def test_read_no_more_the_more_is_done(self):
        read = []
        for done in (1_000, 8_000):
            fill(done)
            look()
            read.append(pages_of(look))

        few, many = read
        assert len(few) == len(many) > 5
        for number, (pages, more) in enumerate(zip(few, many, strict=True)):
            assert more <= 1.3 * pages + 30, (number, few, many)

    def test_read_more_where_each_begins_at_the_beginning(self, monkeypatch):
        """These tests can fail."""
        monkeypatch.setattr(floors, "SLOW", 1e9)
        read = []
        for done in (1_000, 8_000):
            fill(done)
            look()
            read.append(max(pages_of(lambda: stage_and_tell(limit=1, now=NOW, using="default"))))

        assert read[1] > 4 * read[0]


class TestAttempts:
    def test_are_found_by_their_keys(self):
        """Not by their state, by which all can be found that were ever active."""
        read = []
        for done in (1_000, 8_000):
            fill(done)
            attempts = look()
            assert attempts
            mine = {attempt.task.id: attempt.task.attempt for attempt in attempts} | {uuid4(): 1}
            read.append(
                pages_of(lambda a=attempts: still_ours(a, using="default"))
                + pages_of(lambda m=mine: extend_leases(m, using="default"))
            )

        few, many = read
        for pages, more in zip(few, many, strict=True):
            assert more <= 1.3 * pages + 30, (few, many)
