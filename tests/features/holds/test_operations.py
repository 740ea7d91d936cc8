"""Hold: what is written, and what is refused. What it does is told in stories/test_holds."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.testapp.models import Order
from timeline.exceptions import InvalidInput, NaiveDatetime, UnknownTask, UnknownTimeline, WrongEntity
from timeline.features.holds.verbs import hold
from timeline.models import EntityRef, Hold, Scope

pytestmark = pytest.mark.django_db


@pytest.fixture
def held(now):
    def put(**given):
        return hold(**{"scope": Scope.EVERYTHING, "reason": "x", "now": now, "using": "default", **given})

    return put


class TestHold:
    def test_is_one_row(self, held, now, django_assert_num_queries):
        with django_assert_num_queries(1):
            made = held(until=now + timedelta(hours=1), then="shift", actor="ada")

        assert Hold.objects.get() == made
        assert (made.created_at, made.actor, made.is_open, made.names) == (now, "ada", True, [])

    def test_of_an_entity_keeps_its_names(self, held, order):
        made = held(scope=Scope.ENTITY, entity=order)

        assert made.entity_ref == EntityRef("testapp.order", str(order.pk))
        assert made.refs == [made.entity_ref]

    def test_takes_a_reference_for_an_entity(self, held, order):
        assert held(scope=Scope.ENTITY, entity=EntityRef("testapp.order", str(order.pk))).refs

    @pytest.mark.parametrize(
        ("wrong", "error", "field"),
        [
            ({"reason": ""}, InvalidInput, "reason"),
            ({"reason": "x" * 201}, InvalidInput, "reason"),
            ({"actor": "x" * 151}, InvalidInput, "actor"),
            ({"then": "wait"}, InvalidInput, "then"),
            ({"until": datetime(2030, 1, 1)}, NaiveDatetime, "until"),  # noqa: DTZ001
            ({"scope": Scope.TASK, "target": "trial.nothing"}, UnknownTask, "task_key"),
            ({"scope": Scope.TIMELINE, "target": "nothing"}, UnknownTimeline, "timeline"),
            ({"scope": Scope.QUEUE, "target": "nothing"}, InvalidInput, "queue"),
            ({"scope": Scope.TAG, "target": "nothing"}, InvalidInput, "tag"),
            ({"scope": Scope.TASK, "target": 5}, InvalidInput, "task"),
            ({"scope": Scope.QUEUE, "target": None}, InvalidInput, "queue"),
            ({"scope": Scope.ENTITY, "entity": EntityRef("testapp.order", "0")}, WrongEntity, "entity"),
            ({"scope": Scope.ENTITY, "entity": EntityRef("no.model", "1")}, WrongEntity, "entity"),
            ({"scope": Scope.ENTITY, "entity": EntityRef("testapp.order", "x")}, WrongEntity, "entity"),
            ({"scope": Scope.ENTITY, "entity": EntityRef("testapp.order", "1\x00")}, WrongEntity, "entity"),
            ({"scope": Scope.ENTITY, "entity": EntityRef("testapp.order", "9" * 99)}, WrongEntity, "entity"),
            ({"scope": Scope.ENTITY, "entity": None}, WrongEntity, "entity"),
        ],
    )
    def test_refuses_what_is_wrong_and_names_it(self, held, wrong, error, field):
        with pytest.raises(error) as caught:
            held(**wrong)

        assert caught.value.field == field
        assert not Hold.objects.exists()

    @pytest.mark.parametrize("spelled", ["00{}", " {}", "{} ", "+{}"])
    def test_refuses_an_entity_that_rows_call_otherwise(self, held, order, spelled):
        """It would hold nothing: tasks name an order by its key, and by nothing that can be read as that."""
        with pytest.raises(WrongEntity):
            held(scope=Scope.ENTITY, entity=EntityRef("testapp.order", spelled.format(order.pk)))
        with pytest.raises(WrongEntity):
            held(scope=Scope.ENTITY, entity=EntityRef("testapp.Order", str(order.pk)))

    def test_refuses_a_time_that_is_over(self, held, now):
        with pytest.raises(InvalidInput):
            held(until=now)

    def test_refuses_an_entity_that_is_not_saved(self, held):
        with pytest.raises(WrongEntity):
            held(scope=Scope.ENTITY, entity=Order())
