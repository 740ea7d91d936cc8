"""Counting many kinds of rows in one statement."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.store.bounded_counts import DETAIL, KIND, Counted, Pairs, counted_apart, counts_of

PAIRS = [(key, state.value) for key in ("trial.remind", "trial.expire") for state in (State.SCHEDULED, State.CANCELLED)]


def alike():
    return ScheduledTask.objects.filter(task_key=KIND, state=DETAIL).order_by("scheduled_at")


@pytest.fixture
def _rows(make_task):
    for key, state, count in (
        ("trial.remind", State.SCHEDULED, 3),
        ("trial.remind", State.CANCELLED, 1),
        ("trial.expire", State.SCHEDULED, 2),
        ("other.task", State.SCHEDULED, 1),
    ):
        for _ in range(count):
            make_task(task_key=key, state=state)


class TestCountsOf:
    @pytest.mark.usefixtures("_rows")
    def test_counts_each_pair_apart_in_one_statement(self, django_assert_num_queries):
        asks = [Pairs("all", alike(), PAIRS), Pairs("cancelled", alike().filter(state=State.CANCELLED), PAIRS)]

        with django_assert_num_queries(1):
            counts = counts_of(asks, most=10, using="default")

        assert counts == {
            ("all", "trial.remind", "scheduled"): 3,
            ("all", "trial.remind", "cancelled"): 1,
            ("all", "trial.expire", "scheduled"): 2,
            ("cancelled", "trial.remind", "cancelled"): 1,
        }

    @pytest.mark.usefixtures("_rows")
    @pytest.mark.parametrize(("most", "counted"), [(1, 2), (2, 3), (3, 3)])
    def test_stops_at_one_more_than_the_most(self, most, counted):
        counts = counts_of([Pairs("all", alike(), PAIRS[:1])], most=most, using="default")

        assert counts == {("all", "trial.remind", "scheduled"): counted}

    @pytest.mark.usefixtures("_rows")
    def test_asks_nothing_where_there_is_nothing_to_count(self, django_assert_num_queries):
        asks = [Pairs("none", ScheduledTask.objects.none(), PAIRS), Pairs("no pairs", alike(), [])]

        with django_assert_num_queries(0):
            assert counts_of(asks, most=10, using="default") == {}

    @pytest.mark.usefixtures("_rows")
    def test_takes_texts_as_they_are(self):
        hostile = [("x' OR '1'='1", "%s"), ("trial.remind", "scheduled")]

        assert counts_of([Pairs("'; --", alike(), hostile)], most=10, using="default") == {
            ("'; --", "trial.remind", "scheduled"): 3
        }


class TestCountedApart:
    def test_counts_each_name_and_tells_the_first_in_one_statement(self, make_task, now, django_assert_num_queries):
        for hours in (3, 1, 2):
            make_task(scheduled_at=now - timedelta(hours=hours))
        make_task(state=State.AVAILABLE, scheduled_at=now - timedelta(hours=4))
        rows = ScheduledTask.objects.in_order()
        waiting, available = rows.filter(state=State.SCHEDULED), rows.filter(state=State.AVAILABLE)
        asks = [("waiting", waiting), ("both", waiting), ("both", available), ("none", rows.filter(task_key="no.such"))]

        with django_assert_num_queries(1):
            found = counted_apart(asks, most=10, using="default")

        assert found == {
            "waiting": Counted(3, now - timedelta(hours=3)),
            "both": Counted(4, now - timedelta(hours=4)),
            "none": Counted(),
        }

    def test_stops_at_the_most_of_each_name(self, make_task, now):
        for hours in (1, 2, 3):
            make_task(scheduled_at=now - timedelta(hours=hours))
        rows = ScheduledTask.objects.in_order()

        found = counted_apart([("once", rows), ("twice", rows), ("twice", rows)], most=2, using="default")

        assert found == dict.fromkeys(("once", "twice"), Counted(2, now - timedelta(hours=3)))

    @pytest.mark.django_db
    def test_asks_nothing_where_there_is_nothing_to_count(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert counted_apart([("none", ScheduledTask.objects.none())], most=10, using="default") == {}
