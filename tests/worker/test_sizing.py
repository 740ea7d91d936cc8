"""How many tasks of a kind are started together."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline import Timeline, task
from timeline.definition.handlers import SIDE_BY_SIDE
from timeline.engine.groups import BUDGET
from timeline.testing import only_timelines
from timeline.worker.process import LAG, PaceOfKinds, group_size, leaves_time


def test_a_look_taken_ahead_leaves_most_of_the_budget():
    assert timedelta(0) < LAG < BUDGET / 2


class Jobs(Timeline):
    entity = "testapp.Order"

    @task(atomic=False)
    def plain(self, order): ...

    @task()
    def atomic(self, order): ...

    @task(bulk=7, atomic=False)
    def bulk(self, orders): ...

    @task(atomic=False)
    async def side_by_side(self, order): ...


@pytest.fixture(autouse=True)
def _jobs():
    with only_timelines(Jobs):
        yield


@pytest.fixture
def pace_of():
    """The pace of a process that has run a hundred of each kind, each in so many milliseconds."""

    def known(milliseconds):
        pace = PaceOfKinds()
        for name in ("plain", "atomic", "bulk", "side_by_side"):
            pace.took(f"jobs.{name}", 100, 100 * milliseconds / 1000)
        return pace

    return known


class TestGroupSize:
    def test_is_what_is_declared_whatever_the_pace(self, pace_of):
        assert group_size("jobs.bulk", PaceOfKinds()) == group_size("jobs.bulk", pace_of(40)) == 7
        assert group_size("jobs.side_by_side", pace_of(40)) == SIDE_BY_SIDE

    @pytest.mark.parametrize(("name", "size"), [("plain", 10), ("atomic", 9)])
    def test_is_what_the_pace_allows_else(self, pace_of, name, size):
        """For handlers in one transaction a little less, so that few are left for another one."""
        assert group_size(f"jobs.{name}", PaceOfKinds()) == 1
        assert group_size(f"jobs.{name}", pace_of(5)) == size

    @pytest.mark.parametrize(
        ("name", "milliseconds", "size"), [("plain", 4, 9), ("atomic", 4, 11), ("plain", 0.4, 100)]
    )
    def test_leaves_time_for_what_is_done_late_where_handlers_leave_any(self, pace_of, name, milliseconds, size):
        assert group_size(f"jobs.{name}", pace_of(milliseconds), records_late=True) == size

    def test_is_one_of_a_kind_that_is_not_known(self, pace_of):
        assert group_size("gone.work", pace_of(1)) == 1


class TestLeavesTime:
    @pytest.mark.parametrize(
        ("name", "milliseconds", "leaves"),
        [("plain", 0.5, True), ("plain", 0.4, False), ("atomic", 5, False), ("bulk", 5, False)],
    )
    def test_is_of_plain_handlers_that_take_a_while(self, pace_of, name, milliseconds, leaves):
        assert leaves_time(f"jobs.{name}", pace_of(milliseconds)) is leaves
