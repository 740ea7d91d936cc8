"""Rows of keys are found by their indexes, however many there are; what waits for a rate is read by no poll."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from timeline.clocks import story_time
from timeline.features.rates.declaration import Allowance
from timeline.features.rates.store import Asked, admit, forget
from timeline.models import RateKey

pytestmark = [pytest.mark.django_db, pytest.mark.only_postgresql]

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
KEYS = 20_000


@pytest.fixture(autouse=True)
def many():
    RateKey.objects.bulk_create(
        [RateKey(key=f"key:{number}", kept_until=AT + timedelta(days=1)) for number in range(KEYS)], batch_size=2_000
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE timeline_ratekey")


def plans(call):
    """The plan of each statement that reads keys."""
    with CaptureQueriesContext(connection) as asked, story_time(lambda: AT):
        call()
    told = []
    for query in asked.captured_queries:
        if query["sql"].startswith("SELECT") and "timeline_ratekey" in query["sql"]:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN {query['sql']}")
                told.append("\n".join(line for (line,) in cursor.fetchall()))
    return told


class TestPlans:
    def test_of_counting_a_group(self):
        several = {
            f"key:{number}": (Allowance(5, timedelta(hours=1)), [Asked(False)]) for number in range(0, KEYS, 400)
        }

        [plan] = plans(lambda: admit(several, now=AT, using="default"))

        assert "Seq Scan" not in plan
        assert "Index Cond: " in plan

    def test_of_what_is_to_be_forgotten(self):
        [plan] = plans(lambda: forget(now=AT, most=100, using="default"))

        assert "timeline_rate_kept" in plan
