"""Take rows one step on, in one statement that finds, locks, moves and logs them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.store.checking import Stored
from tests.store.moves import ILLEGAL, NOW, PAIRS, Kind
from timeline.lifecycle import OPEN, Reason, State, Trigger
from timeline.store.transition import advance, noticing

REASON = Reason.operator("asked for", "ada")
STEPS = [
    kind for kind in ILLEGAL if kind.state in OPEN and Kind(kind.state, (Trigger.DUE, *kind.triggers)) not in PAIRS
]


@pytest.mark.only_postgresql
class TestStep:
    @pytest.mark.parametrize("kind", STEPS, ids=str)
    def test_is_not_made_of_what_is_found_by_mistake(self, make_task, kind):
        """The row is left."""
        row = make_task(state=kind.state, entity_label="testapp.order", entity_id="1", attempt=1)
        before = Stored.of([row.pk])
        found = {"label": "testapp.order", "entity": "1", "spared": []}

        made = advance("entity", *kind.triggers, reason=REASON, **found, now=NOW, using="default")

        assert made == []
        assert Stored.of([row.pk]) == before


@pytest.mark.only_postgresql
class TestAdvance:
    @pytest.fixture
    def of_one(self, make_task):
        """Make a task of one entity."""
        return lambda **columns: make_task(entity_label="testapp.order", entity_id="1", **columns)

    def call_off(self, columns="id, state"):
        found = {"label": "testapp.order", "entity": "1", "spared": []}
        return advance("entity", Trigger.CANCEL, columns=columns, reason=REASON, now=NOW, using="default", **found)

    def test_moves_and_logs_what_is_found_in_one_statement(self, of_one, make_task, django_assert_num_queries):
        rows = [of_one(state=state, attempt=3, occurrence=state) for state in sorted(OPEN)]
        ended, other = of_one(state=State.COMPLETED), make_task()

        with django_assert_num_queries(1):
            made = self.call_off()

        assert {(row["id"], row["state"]) for row in made} == {(row.pk, "cancelled") for row in rows}
        for row in rows:
            [entry] = row.log.all()
            assert (entry.from_state, entry.to_state, entry.at) == (row.state, "cancelled", NOW)
            assert (entry.reason_code, entry.reason, entry.actor) == ("operator", "asked for", "ada")
        for row in (ended, other):
            before = row.state
            row.refresh_from_db()
            assert (row.state, row.log.count()) == (before, 0)

    def test_gives_the_most_urgent_first(self, of_one):
        hour = timedelta(hours=1)
        last = of_one(occurrence="a", priority=1, scheduled_at=NOW - 9 * hour)
        second = of_one(occurrence="b", scheduled_at=NOW)
        first = of_one(occurrence="c", scheduled_at=NOW - hour)

        assert [row["id"] for row in self.call_off()] == [first.pk, second.pk, last.pk]

    def test_reads_the_columns_that_are_asked_for(self, of_one):
        task = of_one(payload={"n": [1, "é"]}, priority=-2)

        assert self.call_off("id, payload, priority") == [{"id": task.pk, "payload": {"n": [1, "é"]}, "priority": -2}]

    def test_has_those_noticed_that_it_changed(self, of_one):
        task = of_one()

        with noticing() as noticed:
            self.call_off()

        assert noticed == {task.pk}
