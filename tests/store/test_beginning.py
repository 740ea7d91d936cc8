"""Begin runs, any number together: planned first, and then written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, at, task
from timeline.exceptions import DateOutOfRange
from timeline.models import ScheduledTask, TimelineRun, ref_of
from timeline.store.run_insert import FEW, begin_runs, constantly, needs_savepoint, plan_runs
from timeline.testing import only_timelines

TOO_LATE = datetime(9001, 1, 1, tzinfo=UTC)


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def pack(self, order): ...

    @task(at("ships_at"))
    def ship(self, order): ...


class Survey(Timeline):
    """Reads nothing of its entity."""

    entity = "testapp.Order"

    @task(after(days=2))
    def ask(self, order): ...


class OnDemand(Timeline):
    """Nothing is left of its runs from the start."""

    entity = "testapp.Order"

    @task()
    def call(self, order): ...


@pytest.fixture(autouse=True)
def _known(db):
    with only_timelines(Delivery, Survey, OnDemand):
        yield


@pytest.fixture
def planned(now):
    """Plan runs for orders: ``planned(orders, Delivery, …)``."""

    def plan(orders, *timelines, begins=None, **given):
        definitions = {"testapp.order": [timeline.definition for timeline in timelines]}
        entities = {ref_of(order): order for order in orders}
        return plan_runs(definitions, entities, begins=begins or constantly(now), now=now, **given)

    return plan


@pytest.fixture
def orders(now):
    return Order.objects.bulk_create([Order(ships_at=now + timedelta(days=day)) for day in (5, 6, 7)])


def begin(beginnings, now):
    return begin_runs(beginnings, now=now, using="default")


class TestPlanRuns:
    def test_plans_each_timeline_for_each_entity_and_writes_nothing(
        self, planned, orders, now, django_assert_num_queries
    ):
        with django_assert_num_queries(0):
            beginnings = planned(orders, Delivery, Survey, key="k")

        assert [(one.ref, one.columns["timeline"], one.columns["key"]) for one in beginnings] == [
            (ref_of(order), name, "k") for order in orders for name in ("delivery", "survey")
        ]
        assert [one.planned[1]["nominal_at"] for one in beginnings[::2]] == [order.ships_at for order in orders]
        assert {row["nominal_at"] for one in beginnings[1::2] for row in one.planned} == {now + timedelta(days=2)}

    def test_counts_from_what_is_said_of_each(self, planned, orders, now):
        beginnings = planned(orders, Survey, begins=lambda _definition, order: order.ships_at)

        starts = [order.ships_at for order in orders]
        assert [one.columns["started_at"] for one in beginnings] == starts
        assert [one.planned[0]["nominal_at"] for one in beginnings] == [at + timedelta(days=2) for at in starts]
        assert {one.columns["recorded_at"] for one in beginnings} == {now}

    def test_keeps_what_is_wrong_with_one_to_itself(self, planned, orders):
        orders[1].ships_at = TOO_LATE

        problems = [one.problem for one in planned(orders, Delivery)]

        assert [type(problem) for problem in problems] == [type(None), DateOutOfRange, type(None)]


class TestNeedsSavepoint:
    def test_where_one_has_a_problem(self, planned, orders):
        assert not needs_savepoint(planned(orders, Delivery))

        orders[1].ships_at = TOO_LATE

        assert needs_savepoint(planned(orders, Delivery))
        assert not needs_savepoint(planned(orders, Survey))


class TestBeginRuns:
    @pytest.mark.parametrize("count", [3, FEW + 1], ids=["few", "many"])
    def test_writes_each_run_with_its_rows_and_says_which(self, planned, now, count):
        orders = Order.objects.bulk_create([Order(ships_at=now + timedelta(days=5)) for _ in range(count)])
        some = planned(orders[:2], Delivery)
        begin(some, now)

        begun = begin(planned(orders, Delivery), now)

        assert [one.ref for one in begun] == [ref_of(order) for order in orders[2:]]
        assert {one.run(using="default") for one in (*some, *begun)} == set(TimelineRun.objects.all())
        assert ScheduledTask.objects.count() == 2 * count
        for row in ScheduledTask.objects.select_related("run"):
            assert (row.entity_ref, row.state) == (row.run.entity_ref, "scheduled")

    def test_raises_what_is_wrong_with_one_that_begins(self, planned, orders, now):
        orders[1].ships_at = TOO_LATE

        with pytest.raises(DateOutOfRange):
            begin(planned(orders, Delivery), now)

    def test_passes_over_what_is_wrong_where_a_run_is_open(self, planned, orders, now):
        begin(planned(orders[1:2], Delivery), now)
        orders[1].ships_at = TOO_LATE

        begun = begin(planned(orders, Delivery), now)

        assert [one.ref for one in begun] == [ref_of(orders[0]), ref_of(orders[2])]

    def test_ends_at_once_a_run_of_which_nothing_is_left(self, planned, orders, now):
        [on_demand, survey] = begin(planned(orders[:1], OnDemand, Survey), now)

        ended = TimelineRun.objects.get(timeline="on_demand")
        assert (ended.is_finished, ended.ended_at) == (True, now)
        assert on_demand.run(using="default").is_finished
        assert survey.run(using="default").is_open

    @pytest.mark.parametrize(("days", "announced"), [(-1, True), (0, False)], ids=["due", "ahead"])
    def test_announces_what_is_due_at_once(
        self, planned, orders, now, days, announced, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks() as callbacks:
            begin(planned(orders, Survey, begins=constantly(now + timedelta(days=2 * days))), now)

        assert bool(callbacks) is announced
