"""Tasks counted by the time they are due, in the same way on each way to them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.store import counts as store_counts
from timeline.store.counts import counts_in
from timeline.store.index_selection import KindsThere

ASKED = {
    "all": Q(),
    "a timeline": Q(task_key__startswith="trial."),
    "an entity": Q(entity_label="testapp.order", entity_id="1"),
    "entities": Q(entity_label="testapp.order", entity_id__in=["1", "2", "7"]),
    "an entity or a timeline": Q(entity_label="testapp.order", entity_id="1") | Q(task_key__startswith="trial."),
    "a reason": Q(reason_code="operator"),
    "an entity or nothing": Q(pk__in=[]) | Q(entity_label="testapp.order", entity_id="1"),
}
SHOWN = (State.SCHEDULED, State.COMPLETED, State.CANCELLED)


@pytest.fixture
def captured():
    """Gives the statements of the test so far."""
    with CaptureQueriesContext(connection) as seen:
        yield lambda: [query["sql"] for query in seen.captured_queries]


@pytest.fixture
def days(now):
    """Five of them, from two days ago on."""
    return [(now + timedelta(days=day), now + timedelta(days=day + 1)) for day in range(-2, 3)]


@pytest.mark.django_db
class TestCountsIn:
    @pytest.fixture(autouse=True)
    def _rows(self, make_tasks, now):
        make_tasks(
            {
                "task_key": ("trial.remind", "trial.expire", "other.task")[number % 3],
                "state": (*SHOWN, State.DISCARDED)[number % 4],
                "scheduled_at": now + timedelta(hours=6 * (number - 12)),
                "entity_label": "testapp.order",
                "entity_id": str(number % 5),
                "reason_code": "operator" if number % 2 else "done",
            }
            for number in range(48)
        )

    @pytest.mark.parametrize("few", [0, 50])
    @pytest.mark.parametrize("asked", ASKED)
    def test_are_those_of_each_span(self, asked, few, days, now, monkeypatch):
        """However many entities are looked for in each span, or read at once."""
        monkeypatch.setattr(store_counts, "FEW", few)
        tasks = ScheduledTask.objects.filter(ASKED[asked])

        counts = counts_in(tasks, SHOWN, days, 100, now=now, kinds=KindsThere("default"))

        meant = tasks.filter(state__in=SHOWN)
        assert counts == [meant.due_between(*day).count() for day in days]
        assert sum(counts) > 0

    def test_end_at_the_limit(self, days, now):
        tasks = ScheduledTask.objects.filter(task_key__startswith="trial.")

        counts = counts_in(tasks, SHOWN, days, 1, now=now, kinds=KindsThere("default"))

        assert all(count >= 1 for count in counts)
        assert max(counts) > 1

    def test_are_none_where_none_may_be_seen(self, days, now):
        counts = counts_in(ScheduledTask.objects.none(), SHOWN, days, 9, now=now, kinds=KindsThere("default"))

        assert counts == [0] * 5

    @pytest.mark.only_postgresql
    def test_are_not_compiled_where_they_are_walked(self, days, now, captured):
        """Each span brings expressions: to compile them takes a hundred times as long as to read the few rows."""
        counts_in(ScheduledTask.objects.all(), SHOWN, days, 10, now=now, kinds=KindsThere("default"))

        [counted] = [sql for sql in captured() if "counted" in sql]
        assert "set_config('jit', 'off', true)" in counted
