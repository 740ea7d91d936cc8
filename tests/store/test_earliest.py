"""The first tasks of several kinds."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.db.models import Q

from timeline.lifecycle import FINAL, OPEN, State
from timeline.models import ScheduledTask
from timeline.store.earliest import FirstAsked, first_of_kinds, first_page

KINDS = ("trial.remind", "trial.expire")


@pytest.fixture
def rows(make_tasks, now):
    """Of three kinds and three states, by turns, an hour apart; each fifth is about another order."""
    states = (State.SCHEDULED, State.COMPLETED, State.CANCELLED)
    return make_tasks(
        {
            "task_key": (*KINDS, "other.task")[number % 3],
            "state": states[number % 5 % 3],
            "scheduled_at": now + timedelta(hours=number // 2),
            "entity_id": str(number % 5),
            "entity_label": "testapp.order",
        }
        for number in range(60)
    )


class TestFirstOfKinds:
    @pytest.mark.parametrize("latest", [False, True])
    @pytest.mark.parametrize("states", [OPEN, FINAL])
    @pytest.mark.parametrize("most", [3, 100])
    def test_are_the_first_by_time(self, rows, states, latest, most, django_assert_max_num_queries):
        tasks = ScheduledTask.objects.exclude(entity_id="4")

        with django_assert_max_num_queries(2):
            [found] = first_of_kinds(tasks, KINDS, [FirstAsked(states, latest)], most)

        wanted = [row for row in rows if row.task_key in KINDS and row.state in states and row.entity_id != "4"]
        wanted.sort(key=lambda row: (row.scheduled_at, row.pk), reverse=latest)
        assert [row.scheduled_at for row in found] == [row.scheduled_at for row in wanted[:most]]
        assert len(set(found)) == len(found)
        assert most == 3 or found == wanted
        assert len(found) >= 3

    @pytest.mark.usefixtures("rows")
    def test_are_none_of_no_kind_and_where_none_may_be_seen(self):
        assert first_of_kinds(ScheduledTask.objects.all(), [], [FirstAsked(OPEN)], 5) == [[]]
        assert first_of_kinds(ScheduledTask.objects.none(), KINDS, [FirstAsked(OPEN), FirstAsked(FINAL)], 5) == [[], []]

    @pytest.mark.usefixtures("rows")
    def test_are_read_together_on_each_side(self, django_assert_max_num_queries):
        tasks, sides = ScheduledTask.objects.all(), [FirstAsked(FINAL, latest=True), FirstAsked(OPEN)]

        with django_assert_max_num_queries(2):
            past, ahead = first_of_kinds(tasks, KINDS, sides, 5)

        for found, side in ((past, sides[:1]), (ahead, sides[1:])):
            [alone] = first_of_kinds(tasks, KINDS, side, 5)
            assert [row.scheduled_at for row in found] == [row.scheduled_at for row in alone]
            assert len(found) == 5
            assert {row.state for row in found} <= set(side[0].states)


ASKED = {
    "a kind": Q(task_key=KINDS[0]),
    "a timeline": Q(task_key__startswith="trial."),
    "a few entities": Q(entity_label="testapp.order", entity_id__in=["1", "2"]),
    "a few entities, or a timeline": Q(entity_label="testapp.order", entity_id="1") | Q(task_key__startswith="trial."),
    "one entity, or a kind that is not there": Q(entity_label="testapp.order", entity_id="1")
    | Q(task_key="other.kind"),
    "an entity, and all but a kind": Q(entity_label="testapp.order", entity_id="1") & ~Q(task_key=KINDS[0]),
    "a reason that few have": Q(reason_code="operator"),
    "a reason that few have, of a timeline": Q(reason_code="operator", task_key__startswith="trial."),
    "an entity, or a key": Q(entity_label="testapp.order", entity_id="1") | Q(pk=UUID(int=7)),
    "all": Q(),
    "none": Q(pk__in=[]) | Q(entity_label="testapp.order", entity_id="17"),
}


class TestFirstPage:
    @pytest.mark.parametrize("latest", [False, True])
    @pytest.mark.parametrize("most", [1, 4])
    @pytest.mark.parametrize("asked", ASKED)
    def test_has_each_once_in_order_where_many_are_due_at_one_moment(self, make_tasks, now, asked, most, latest):
        """A page begins behind the last task of the one before: by its time, and then by its key."""
        states = (State.SCHEDULED, State.COMPLETED, State.CANCELLED)
        make_tasks(
            {
                "pk": UUID(int=number + 1),
                "task_key": (*KINDS, "other.task")[number % 3],
                "state": states[number // 3 % 3],
                "scheduled_at": now + timedelta(hours=number // 12),
                "entity_label": "testapp.order",
                "entity_id": str(number % 4),
                "reason_code": "operator" if number % 2 else "done",
            }
            for number in range(24)
        )
        shown = (State.SCHEDULED, State.CANCELLED)
        meant = ScheduledTask.objects.filter(ASKED[asked])
        seen, rows = [], meant

        while found := first_page(rows, FirstAsked(shown, latest), most):
            seen += found
            at, key, way = found[-1].scheduled_at, found[-1].pk, "lt" if latest else "gt"
            rows = meant.filter(Q(**{f"scheduled_at__{way}": at}) | Q(**{"scheduled_at": at, f"pk__{way}": key}))

        wanted = meant.filter(state__in=shown)
        assert seen == sorted(wanted, key=lambda task: (task.scheduled_at, task.pk), reverse=latest)
        assert len(seen) >= (0 if asked == "none" else 2)

    def test_reads_what_was_asked_for_of_each(self, make_task, django_assert_num_queries):
        task = make_task(task_key=KINDS[0])
        tasks = ScheduledTask.objects.filter(task_key=KINDS[0]).select_related("run").defer("payload")

        [found] = first_page(tasks, FirstAsked(OPEN), 5)

        assert found == task
        assert found.get_deferred_fields() == {"payload"}
        with django_assert_num_queries(0):
            assert found.run is None
