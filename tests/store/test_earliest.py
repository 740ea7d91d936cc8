"""The first tasks of several kinds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.lifecycle import FINAL, OPEN, State
from timeline.models import ScheduledTask
from timeline.store.earliest import First, first_of_kinds

KINDS = ("trial.remind", "trial.expire")


@pytest.fixture
def rows(make_task, now):
    """Of three kinds and three states, by turns, an hour apart; each fifth is about another order."""
    states = (State.SCHEDULED, State.COMPLETED, State.CANCELLED)
    return [
        make_task(
            task_key=(*KINDS, "other.task")[number % 3],
            state=states[number % 5 % 3],
            scheduled_at=now + timedelta(hours=number // 2),
            entity_id=str(number % 5),
            entity_label="testapp.order",
        )
        for number in range(60)
    ]


class TestFirstOfKinds:
    @pytest.mark.parametrize("latest", [False, True])
    @pytest.mark.parametrize("states", [OPEN, FINAL])
    @pytest.mark.parametrize("most", [3, 100])
    def test_are_the_first_by_time(self, rows, states, latest, most, django_assert_max_num_queries):
        tasks = ScheduledTask.objects.exclude(entity_id="4")

        with django_assert_max_num_queries(2):
            [found] = first_of_kinds(tasks, KINDS, [First(states, latest)], most)

        wanted = [row for row in rows if row.task_key in KINDS and row.state in states and row.entity_id != "4"]
        wanted.sort(key=lambda row: (row.scheduled_at, row.pk), reverse=latest)
        assert [row.scheduled_at for row in found] == [row.scheduled_at for row in wanted[:most]]
        assert len(set(found)) == len(found)
        assert most == 3 or found == wanted
        assert len(found) >= 3

    @pytest.mark.usefixtures("rows")
    def test_are_none_of_no_kind_and_where_none_may_be_seen(self):
        assert first_of_kinds(ScheduledTask.objects.all(), [], [First(OPEN)], 5) == [[]]
        assert first_of_kinds(ScheduledTask.objects.none(), KINDS, [First(OPEN), First(FINAL)], 5) == [[], []]

    @pytest.mark.usefixtures("rows")
    def test_are_read_together_on_each_side(self, django_assert_max_num_queries):
        tasks, sides = ScheduledTask.objects.all(), [First(FINAL, latest=True), First(OPEN)]

        with django_assert_max_num_queries(2):
            past, ahead = first_of_kinds(tasks, KINDS, sides, 5)

        for found, side in ((past, sides[:1]), (ahead, sides[1:])):
            [alone] = first_of_kinds(tasks, KINDS, side, 5)
            assert [row.scheduled_at for row in found] == [row.scheduled_at for row in alone]
            assert len(found) == 5
            assert {row.state for row in found} <= set(side[0].states)
