"""What is in the database that the table of a machine does not have."""

from __future__ import annotations

import pytest

from tests.tours import Before, Now, toured
from timeline.features.machines.plans import machine_plans
from timeline.shortcuts import leave
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


def plan(machine):
    [found] = machine_plans([machine.definition], using="default")
    return found


class TestMachinePlans:
    def test_find_nothing_where_all_is_as_the_table_says(self):
        toured("NEW", "CHECKED", "CHECKED", "SENT")

        found = plan(Before)

        assert found.states == {"NEW": 1, "CHECKED": 2, "ODD": 0, "HALTED": 0, "SENT": 0}
        assert not found.has_work
        assert (found.stranded, found.backs, found.old_edges, found.missing_edges, found.stateless) == (
            {},
            {},
            [],
            [],
            0,
        )

    def test_count_the_open_runs_of_states_that_it_lacks(self):
        order, *_others = toured("CHECKED", "CHECKED", "ODD", "HALTED")
        with only_timelines(Before):
            leave(Before, order, reason="ended runs need nothing")

        found = plan(Now)

        assert found.stranded == {"CHECKED": 1, "ODD": 1}
        assert found.backs == {"CHECKED": 1}
        assert found.lost == {"CHECKED", "ODD"}
        assert found.states == {"NEW": 0, "PACKED": 0, "HALTED": 1, "SENT": 0}
        assert found.has_work

    def test_name_the_moves_of_either_side(self):
        toured("CHECKED")

        found = plan(Now)

        assert ("NEW", "CHECKED") in found.old_edges
        assert ("NEW", "PACKED") in found.missing_edges
        assert not {*found.old_edges} & Now.definition.machine.edges

    def test_take_one_statement(self, django_assert_num_queries):
        toured("NEW", "ODD")

        with django_assert_num_queries(1):
            machine_plans([Now.definition], using="default")
        with django_assert_num_queries(0):
            assert machine_plans([], using="default") == []
