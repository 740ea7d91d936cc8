"""Whatever the bursts: one run for each, when it has been quiet or may wait no longer, that knows all its events."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.testapp.models import Order
from timeline import Debounce, Timeline, task
from timeline.models import ScheduledTask
from timeline.shortcuts import emit, reconcile
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db

QUIET, AT_LATEST = 5, 12  # Minutes.


class Pages(Timeline):
    entity = "testapp.Order"

    @task(debounce=Debounce("page.edited", quiet=timedelta(minutes=QUIET), at_latest=timedelta(minutes=AT_LATEST)))
    def rebuild(self, order): ...


def expected(moments):
    """When the bursts of events at these minutes run, and how many events each stands for."""
    found = []
    first = due = None
    for at in moments:
        if due is None or at >= due:
            first = at
            found.append([0, 0])
        due = min(at + QUIET, first + AT_LATEST)
        found[-1] = [due, found[-1][1] + 1]
    return found


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 8), st.booleans()), min_size=1, max_size=20))
def test_there_is_one_run_for_each_burst(clock, coming):
    orders = [Order.objects.create(), Order.objects.create()]
    begun, minute = clock.now, 0
    moments = {order.pk: [] for order in orders}
    with only_timelines(Pages):
        for number, (which, gap, again) in enumerate(coming):
            clock.advance(minutes=gap)
            minute += gap
            for _time in range(2 if again else 1):  # The same event twice counts once.
                emit("page.edited", orders[which], key=str(number))
            reconcile(orders[which])
            moments[orders[which].pk].append(minute)
        clock.advance(minutes=AT_LATEST)

    for order in orders:
        rows = ScheduledTask.objects.for_entity(order).order_by("created_at", "occurrence")
        assert {row.state for row in rows} <= {"completed"}
        ran = [[(row.started_at - begun) / timedelta(minutes=1), row.payload["burst"]["events"]] for row in rows]
        assert ran == expected(moments[order.pk])
