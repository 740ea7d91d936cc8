"""Ways to rows."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.db.models import Q

from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.store.index_selection import MOST_KINDS, KindsThere, ways_to

THERE = ["other.task", "trial.expire", "trial.remind"]
STATES = (State.CANCELLED, State.SCHEDULED)
ORDER = Q(entity_label="testapp.order", entity_id="1")


def ways(condition, there=THERE):
    return ways_to(ScheduledTask.objects.filter(condition), STATES, lambda: there)


class TestWaysTo:
    def test_are_by_entity_where_few_are_named(self):
        [way] = ways(ORDER).looked_for

        assert (way.by_entity, way.pairs) == (True, [("testapp.order", "1")])

    def test_are_by_kind_and_state_where_kinds_are(self):
        found = ways(Q(task_key__startswith="trial."))

        assert not found.walked
        assert [pair for way in found.looked_for for pair in way.pairs] == [
            (kind, state) for kind in THERE[1:] for state in sorted(STATES)
        ]

    def test_are_by_reason_where_few_have_it(self):
        cancelled, others = ways(Q(reason_code="operator")).looked_for

        assert cancelled.pairs == [(kind, "") for kind in THERE]
        assert others.pairs == [("", State.SCHEDULED)]

    @pytest.mark.parametrize(
        "condition",
        [
            Q(),
            Q(reason_code="done"),
            ~Q(task_key="gone.task"),
            Q(task_key__gt="a", finished_at__gt="2026-01-01T00:00Z"),
        ],
    )
    def test_are_walks_of_states_where_nothing_else_is_quicker(self, condition):
        found = ways(condition)

        assert (len(found.walked), found.looked_for) == (1, [])

    def test_are_walks_where_kinds_are_many(self):
        many = [f"trial.number_{number}" for number in range(MOST_KINDS + 1)]

        assert ways(Q(task_key__startswith="trial."), [*many, "other.task"]).walked
        assert ways(Q(task_key__in=many), [*many, "other.task"]).looked_for

    def test_are_walks_where_a_kind_is_about_others_than_asked_for(self):
        """All its rows would be read in search of one."""
        trial = Q(task_key__startswith="trial.")

        assert ways(trial & Q(entity_label="accounts.user")).looked_for
        assert ways(trial & Q(entity_label="testapp.order")).walked

    def test_are_by_key_where_that_is_named(self):
        assert [way.pairs for way in ways(Q(pk=UUID(int=1), task_key__startswith="trial.")).looked_for] == [[("", "")]]

    def test_are_none_to_what_is_about_two_kinds_of_entities(self):
        found = ways(Q(task_key__startswith="trial.", entity_label="a.b") & Q(entity_label="testapp.order"))

        assert (found.looked_for, found.walked) == ([], [])

    def test_are_two_where_entities_or_kinds_are_asked_for(self):
        few, many = ways(ORDER | Q(task_key="other.task")).looked_for

        assert (few.by_entity, many.by_entity) == (True, False)
        assert {kind for kind, _state in many.pairs} == {"other.task"}


@pytest.mark.django_db
class TestKindsThere:
    def test_are_read_once_and_only_if_asked_for(self, make_task, django_assert_num_queries):
        make_task(task_key="trial.remind")

        with django_assert_num_queries(0):
            kinds = KindsThere("default")
        with django_assert_num_queries(1):
            assert (kinds(), kinds()) == (["trial.remind"], ["trial.remind"])
