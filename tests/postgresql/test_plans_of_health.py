"""What the doctor asks is answered by indexes where all that is past has ended, and all that has not is ahead."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.postgresql.plans import around_tests, plans_made_by
from timeline.models import Hold, Scope
from timeline.reading.diagnosis import diagnose

pytestmark = [pytest.mark.only_postgresql, pytest.mark.django_db]

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
FILL = """
INSERT INTO timeline_scheduledtask (
    id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash, payload,
    attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at, finished_at,
    entity_label, entity_id
)
SELECT gen_random_uuid(), 'shipping.pack', number::text, 1, kind.state, 0, 0, 'default', moment, moment, '', '', '{}',
    0, 0, 0, 5, '', '', CASE kind.state WHEN 'scheduled' THEN '' WHEN 'discarded' THEN 'error' ELSE 'done' END, '', '', %(now)s,
    CASE WHEN kind.state <> 'scheduled' THEN moment END, 'testapp.order', number::text
FROM generate_series(-60000, 60000) AS number
CROSS JOIN LATERAL (SELECT %(now)s::timestamptz + number * interval '1 minute' AS moment) AS times
CROSS JOIN LATERAL (SELECT CASE
    WHEN number > 0 THEN 'scheduled'
    WHEN number %% 100 = 0 THEN 'discarded'
    ELSE 'completed'
END AS state) AS kind
"""


@pytest.fixture(scope="module")
def _years_of_it(django_db_setup, django_db_blocker):
    def fill(cursor):
        cursor.execute(FILL, {"now": NOW})
        cursor.execute("ANALYZE timeline_scheduledtask")

    with around_tests(django_db_blocker, "timeline_scheduledtask", fill):
        yield


@pytest.mark.usefixtures("_years_of_it")
@pytest.mark.parametrize("is_held", [False, True], ids=["nothing on hold", "an entity on hold"])
def test_reads_no_whole_table(is_held):
    if is_held:
        Hold.objects.create(
            scope=Scope.ENTITY, entity_label="testapp.order", entity_id="1", reason="so", created_at=NOW
        )

    plans = plans_made_by(lambda: diagnose(now=NOW, using="default"))

    assert sum(plan.count(" on timeline_scheduledtask") for plan in plans) > (16 if is_held else 10)
    for plan in plans:
        assert "Seq Scan on timeline_scheduledtask" not in plan, plan
