"""Limits and holds: what is on hold takes no place, and nobody waits for a place because of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Timeline, task
from timeline.engine.groups import run_begun
from timeline.features.limits.claims import begin_limited, claim_limited, is_place_free
from timeline.features.limits.places import LimitedKind, limited_kinds
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import hold, release, schedule
from timeline.testing import StoryClock, only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

KIND = "calls.call"


class Calls(Timeline):
    """One at a time."""

    entity = "testapp.Order"

    @task(limit=1, atomic=False)
    def call(self, order):
        return None


@pytest.fixture(autouse=True)
def known():
    with only_timelines(Calls):
        yield


@pytest.fixture
def orders(now):
    """Two orders; that of the first is due before that of the second."""
    made = [Order.objects.create(), Order.objects.create()]
    for place, order in enumerate(made):
        schedule(KIND, order, at=now - timedelta(seconds=2 - place))
    return made


def begin(now, *, on_hold):
    kind = LimitedKind(KIND, 1, frozenset({"on_hold"} if on_hold else ()))
    return begin_limited(kind, most=10, worker="w", now=now, using="default")


def looked():
    return limited_kinds([KIND], using="default")


class TestAnEntityOnHold:
    def test_is_passed_over_by_who_begins(self, orders, now):
        hold(orders[0], reason="asked to wait")
        assert looked() == [LimitedKind(KIND, 1, left_out=frozenset({"on_hold"}))]

        [attempt] = begin(now, on_hold=True)

        assert attempt.task.entity_id == str(orders[1].pk)

    def test_is_passed_over_by_who_claims(self, orders, now):
        hold(orders[0], reason="asked to wait")

        [batch] = claim_limited(now=now, using="default")

        [claimed] = batch.task_ids
        assert ScheduledTask.objects.get(pk=claimed).entity_id == str(orders[1].pk)

    def test_waits_for_no_place(self, orders, now):
        for order in orders:
            hold(order, reason="asked to wait")

        assert not is_place_free(using="default")
        assert claim_limited(now=now, using="default") == []

    def test_gives_its_place_up_where_it_was_put_on_hold_since_it_began(self, orders, now):
        [attempt] = begin(now, on_hold=False)
        hold(orders[0], reason="asked to wait")

        run_begun([attempt], clock=lambda: now, using="default")

        task = ScheduledTask.objects.get(pk=attempt.task.pk)
        assert (task.state, task.reason_code, task.slot) == (State.RETRYABLE, "hold", 0)
        [following] = begin(now, on_hold=True)
        assert following.task.entity_id == str(orders[1].pk)


class TestAKindOnHold:
    def test_is_not_begun_and_not_claimed(self, orders, now):
        hold(task=KIND, reason="their line is dead")

        assert looked() == []
        assert claim_limited(now=now, using="default") == []
        assert not is_place_free(using="default")

    def test_goes_on_when_it_is_released(self, orders, now):
        release(hold(task=KIND, reason="their line is dead"))

        assert looked() == [LimitedKind(KIND, 1)]


class TestNothingOnHold:
    def test_costs_no_statement_more(self, orders, django_assert_num_queries):
        with django_assert_num_queries(1):
            looked()


def test_the_clock_of_tests_passes_over_what_is_on_hold(now):
    with StoryClock() as clock:
        first, second = Order.objects.create(), Order.objects.create()
        for order in (first, second):
            schedule(KIND, order, at=clock.now + timedelta(minutes=1))
        hold(first, reason="asked to wait")

        clock.advance(hours=1)

        states = dict(ScheduledTask.objects.values_list("entity_id", "state"))
    assert states == {str(first.pk): State.AVAILABLE, str(second.pk): State.COMPLETED}
