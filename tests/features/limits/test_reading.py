"""What the inventory says of limits."""

from __future__ import annotations

from tests.reading import test_inventory
from tests.reading.test_inventory import listed
from timeline import Limit, Timeline, task
from timeline.models import ScheduledTask
from timeline.testing import only_timelines

clock = test_inventory.clock  # Fixtures.


class Calls(Timeline):
    """Calls."""

    entity = "testapp.Order"

    @task(limit=10)
    def call(self, order):
        """Call."""

    @task(limit=Limit(2, "bank", by="note", until="end"))
    def pay(self, order):
        """Pay."""


class TestLimits:
    def test_are_told_with_what_is_held_and_what_waits(self, make_task, order):
        with only_timelines(Calls):
            rows = [make_task(task_key="calls.call", state="available") for _ in range(3)]
            ScheduledTask.objects.filter(pk__in=[row.pk for row in rows]).update(limit_key="calls.call")
            ScheduledTask.objects.filter(pk=rows[0].pk).update(slot=1)

            call, pay = listed()["calls"].tasks

        assert call.told_limit == "10 at once: 1 held, 2 waiting"
        assert pay.told_limit == "2 at once for each of bank (note), until its end: 0 held, 0 waiting"

    def test_cost_two_statements_more(self, django_assert_num_queries):
        with only_timelines(Calls), django_assert_num_queries(4):
            listed()
