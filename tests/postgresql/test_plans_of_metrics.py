"""Plans of a scrape: indexes answer it at 100,000 rows, also with stale statistics, and it reads no more than it counts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from tests.postgresql.plans import around_tests, plans_made_by
from tests.postgresql.test_plans import FILL, KNOWN, LOG, NOW, TABLES
from timeline import Timeline, task
from timeline.models import Hold
from timeline.reading.measuring import measure
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db

ROWS = 100_000


class Trial(Timeline):
    entity = "accounts.User"

    @task()
    def remind(self, user) -> None: ...

    @task()
    def end(self, user) -> None: ...


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(Trial):
        yield


@pytest.fixture(scope="module", params=["fresh", "stale"])
def _filled(request, django_db_setup, django_db_blocker):
    """So many rows, filled once, in a transaction around those of the tests; see ``tests.postgresql.test_plans``."""
    with around_tests(django_db_blocker, TABLES):
        with connection.cursor() as cursor:
            for sql in [KNOWN] if request.param == "stale" else []:
                cursor.execute(sql)
            cursor.execute(FILL, {"now": NOW, "rows": ROWS})
            cursor.execute(LOG, {"now": NOW})
            for sql in [KNOWN] if request.param == "fresh" else []:
                cursor.execute(sql)
        yield


@pytest.mark.usefixtures("_filled")
class TestMeasure:
    @pytest.mark.parametrize("scope", ["", "task", "entity"])
    @pytest.mark.parametrize("now", [NOW, NOW + timedelta(days=900)], ids=["few are due", "all are due"])
    def test_is_answered_by_indexes(self, scope, now):
        """Not by a walk through the table until so many are found: there may be very many before them."""
        if scope:
            refs = {"entity_label": "accounts.user", "entity_id": "7"} if scope == "entity" else {"target": "trial.end"}
            Hold.objects.create(scope=scope, reason="so", created_at=NOW, names=[["accounts.user", "7"]], **refs)

        plans = plans_made_by(lambda: measure(now=now, using="default"))

        assert len(plans) == 2
        for plan in plans:
            assert "Seq Scan on timeline_scheduledtask" not in plan, plan
            assert "Seq Scan on timeline_logentry" not in plan, plan
