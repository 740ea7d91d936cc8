"""Plans of a poll and of a worker where thousands fall due in the same second."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection

from tests.postgresql.plans import Post, plans_made_by
from timeline.dispatch.poll import dispatch
from timeline.engine.groups import begin_ready
from timeline.lifecycle import State
from timeline.store.floors import IndexPlace

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

HERD = """
INSERT INTO timeline_scheduledtask (
    id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash, payload,
    attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at, entity_label, entity_id
)
SELECT gen_random_uuid(), 'trial.remind', number::text, 1, %(state)s, 0, 0, 'default', %(at)s, %(at)s, '', '', '{}',
    0, 0, 0, 5, '', '', '', '', '', %(at)s, '', ''
FROM generate_series(1, %(rows)s) AS number
"""


class TestHerd:
    """Thousands that fall due in the same second, in a table of which PostgreSQL knows nothing yet."""

    def ready(self, state):
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE timeline_scheduledtask CASCADE")
            cursor.execute("DELETE FROM pg_statistic WHERE starelid = 'timeline_scheduledtask'::regclass")
            cursor.execute(HERD, {"state": state, "at": NOW, "rows": 40_000})

    @pytest.mark.parametrize("state", [State.AVAILABLE, State.SCHEDULED])
    def test_is_not_sorted_for_the_first_of_it(self, state):
        """Every hot question has an index that has it in order; only the rows a statement gives are sorted."""
        self.ready(state)

        plans = plans_made_by(lambda: dispatch(sender=Post(), limit=100, now=NOW, using="default"))
        plans += plans_made_by(
            lambda: begin_ready(
                task_key="trial.remind",
                priority=0,
                most=100,
                since=IndexPlace(NOW),
                clock=lambda: NOW,
                using="default",
                worker="w",
            )
        )

        assert any("timeline_task_free" in plan and "LockRows" in plan for plan in plans)
        for plan in (plan for plan in plans if "Limit" in plan):
            _above, locked, below = plan.partition("LockRows")
            first = below.partition("CTE moved")[0] if locked else plan
            assert "Sort" not in first, plan
