"""Tasks counted by state, in the same way on each way to them."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from tests.store.test_spans import ASKED, SHOWN
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.store.counts import counts_by_state
from timeline.store.index_selection import KindsThere


@pytest.fixture(autouse=True)
def _rows(make_tasks):
    make_tasks(
        {
            "task_key": ("trial.remind", "trial.expire", "other.task")[number % 3],
            "state": (*SHOWN, State.DISCARDED)[number % 4],
            "entity_label": "testapp.order",
            "entity_id": str(number % 5),
            "reason_code": "operator" if number % 2 else "done",
        }
        for number in range(48)
    )


@pytest.mark.django_db
class TestCountsByState:
    @pytest.mark.parametrize("asked", ASKED)
    def test_are_those_of_each_state(self, asked):
        tasks = ScheduledTask.objects.filter(ASKED[asked])

        counts = counts_by_state(tasks, SHOWN, KindsThere("default"))

        assert counts == Counter(tasks.filter(state__in=SHOWN).values_list("state", flat=True))
        assert counts.total() > 0

    def test_end_at_the_limit_where_kinds_or_entities_are_looked_for(self):
        tasks = ScheduledTask.objects.filter(Q(task_key="trial.remind"))

        counts = counts_by_state(tasks, [State.SCHEDULED], KindsThere("default"), most=1)

        looks_for_each = connection.features.supports_slicing_ordering_in_compound
        assert counts == {State.SCHEDULED: 2 if looks_for_each else 4}

    def test_are_none_where_none_may_be_seen(self):
        assert not counts_by_state(ScheduledTask.objects.none(), SHOWN, KindsThere("default"))

    @pytest.mark.only_postgresql
    def test_are_not_sorted_where_all_are_walked(self):
        """Expected are fewer rows than there are: a sort of hundreds of thousands goes by a file."""
        with CaptureQueriesContext(connection) as seen:
            counts_by_state(ScheduledTask.objects.all(), SHOWN, KindsThere("default"))

        [counted] = [query["sql"] for query in seen.captured_queries if "GROUP BY" in query["sql"]]
        assert "set_config('enable_sort', 'off', true)" in counted
