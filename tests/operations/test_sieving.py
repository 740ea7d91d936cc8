"""A sieve asks the database about runs, until it has seen that this rules out next to none of a timeline's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.testapp.models import Order
from timeline import Timeline, at, task
from timeline.features.plans.differ import MOST, UNASKED, Sieve, differences
from timeline.features.plans.drift_query import pages_of_open_runs
from timeline.models import TimelineRun
from timeline.registry import registry
from timeline.shortcuts import start
from timeline.testing import only_timelines

NOW = datetime(2026, 3, 20, 9, 0, tzinfo=UTC)
LATER = timedelta(days=1)


class Care(Timeline):
    name = "care"
    entity = "testapp.Order"

    @task(at("ships_at"))
    def ship(self, order): ...


class Other(Care):
    name = "other"


@pytest.fixture(autouse=True)
def _declared(db, clock):
    clock.set(NOW)
    with only_timelines(Care, Other):
        yield


@pytest.fixture
def runs():
    """Four open runs of each timeline, all as their orders say."""
    orders = [Order.objects.create(ships_at=NOW + timedelta(days=3)) for _ in range(4)]
    for order in orders:
        start("care", order)
        start("other", order)
    return orders


def refs_of(timeline):
    return next(pages_of_open_runs([timeline], size=100, using="default"))


def shift(orders):
    """Change orders as SQL does, which no signal sees."""
    Order.objects.filter(pk__in=[order.pk for order in orders]).update(ships_at=NOW + timedelta(days=4))


def asked(sieve, refs, queries):
    """What it gives, and whether it has asked."""
    with queries() as seen:
        found = sieve.to_plan(refs, now=NOW, using="default")
    return found, bool(len(seen))


@pytest.fixture
def queries(django_assert_max_num_queries):
    return lambda: django_assert_max_num_queries(5)


class TestSieve:
    def test_gives_those_in_doubt(self, runs):
        shift(runs[:1])
        refs = refs_of("care")

        found = Sieve().to_plan(refs, now=NOW, using="default")

        assert found == {ref.id for ref in refs if ref.entity_id == str(runs[0].pk)}

    def test_asks_again_where_some_stand(self, runs, queries):
        """Of exactly three quarters it still goes on to ask."""
        assert len(runs) * MOST == 3
        shift(runs[:3])
        sieve, refs = Sieve(), refs_of("care")

        told = [asked(sieve, refs, queries) for _ in range(3)]

        assert [(len(found), is_asked) for found, is_asked in told] == [(3, True)] * 3

    def test_does_not_ask_for_some_portions_where_nearly_all_were_in_doubt(self, runs, queries):
        shift(runs)
        sieve, refs = Sieve(), refs_of("care")

        told = [asked(sieve, refs, queries) for _ in range(UNASKED + 2)]

        assert [is_asked for _found, is_asked in told] == [True, *[False] * UNASKED, True]
        assert all(found == {ref.id for ref in refs} for found, _is_asked in told)

    def test_knows_each_timeline_by_itself(self, runs, queries):
        """All of one are in doubt; the other's that stand are ruled out all the same."""
        shift(runs)
        sieve, care = Sieve(), refs_of("care")
        sieve.to_plan(care, now=NOW, using="default")
        Order.objects.update(ships_at=NOW + timedelta(days=3))
        both = care + refs_of("other")

        found, is_asked = asked(sieve, both, queries)

        assert is_asked
        assert found == {ref.id for ref in care}

    def test_leaves_out_runs_of_a_timeline_that_nobody_declares(self, runs):
        refs = refs_of("care")
        with only_timelines(Other):
            assert Sieve().to_plan(refs, now=NOW, using="default") == set()


class TestDifferences:
    def test_are_the_same_whether_or_not_it_asks(self, runs, monkeypatch):
        """A portion that is planned unasked has runs that stand: they are counted as they were."""
        monkeypatch.setattr("timeline.features.plans.differ.SIZE", 2)
        first = list(TimelineRun.objects.filter(timeline="care").order_by("pk"))[:2]
        shift([order for order in runs if str(order.pk) in {run.entity_id for run in first}])

        *_others, found = differences([registry.timeline("care")], now=NOW, using="default")

        differs = found["care"]
        assert (differs.runs, differs.changed) == (4, 2)
        assert (differs.tasks["ship"].moved, differs.tasks["ship"].unchanged) == (2, 2)
