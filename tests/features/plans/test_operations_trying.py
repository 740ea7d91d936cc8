"""Try: what would come of it is told, and nothing of it stays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Machine, Timeline, after, at, before, task
from timeline.exceptions import DateOutOfRange, InvalidInput, MoveNotAllowed, NaiveDatetime, WrongEntity
from timeline.models import EntityRef, Event, LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, what_if
from timeline.testing import only_timelines


class Shipping(Timeline):
    """Follows a date of the order."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.returned": "returned"}

    @task(before("ships_at", days=1))
    def pack(self, order): ...

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(ship, days=7))
    def ask(self, order): ...


class Door(Machine):
    """Opens and closes."""

    entity = "testapp.Order"
    starts_on = "door.built"
    initial = "CLOSED"
    working = ("CLOSED", "OPEN")
    table = {"CLOSED": {"door.opened": "OPEN"}, "OPEN": {"door.broken": "GONE"}, "GONE": {}}


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Shipping, Door):
        yield


@pytest.fixture
def order(clock):
    order = Order.objects.create(ships_at=clock.now + timedelta(days=10))
    emit("order.placed", order)
    return order


@pytest.fixture
def nothing_stays():
    """Whatever is asked, the tables are as they were."""

    def stored():
        return [
            list(model.objects.order_by("pk").values())
            for model in (Event, TimelineRun, ScheduledTask, LogEntry, Order)
        ]

    return stored


def told(effects):
    return [(effect.task_key, effect.change, effect.is_foreseen) for effect in effects]


class TestWhatIf:
    def test_tells_what_would_move_with_what_follows(self, order, clock, nothing_stays):
        was, later = nothing_stays(), order.ships_at + timedelta(days=5)

        effects = what_if(order, fields={"ships_at": later})

        assert told(effects) == [
            ("shipping.pack", "moved", False),
            ("shipping.ship", "moved", False),
            ("shipping.ask", "moved", True),
        ]
        assert [effect.then_at - effect.at for effect in effects] == [timedelta(days=5)] * 3
        assert nothing_stays() == was

    def test_tells_what_would_be_gone_and_why(self, order, nothing_stays):
        was = nothing_stays()

        effects = what_if(order, event="order.returned")

        assert {effect.change for effect in effects} == {"gone"}
        assert [effect.why for effect in effects if not effect.is_foreseen] == [
            "the run ended by the exit “returned”"
        ] * 2
        assert nothing_stays() == was

    def test_tells_what_would_be_new(self, clock, nothing_stays):
        order = Order.objects.create(ships_at=clock.now + timedelta(days=2))
        was = nothing_stays()

        effects = what_if(order, event="order.placed")

        assert told(effects) == [
            ("shipping.pack", "new", False),
            ("shipping.ship", "new", False),
            ("shipping.ask", "new", True),
        ]
        assert nothing_stays() == was

    def test_tells_what_would_stay_as_it_is(self, order):
        assert {effect.change for effect in what_if(order)} == {"same"}

    def test_tells_both_at_once(self, order, clock):
        effects = what_if(order, fields={"ships_at": clock.now + timedelta(days=1)}, event="order.returned")

        assert {effect.change for effect in effects} == {"gone"}

    def test_moves_no_machine_and_teaches_nobody_an_edge(self, order, nothing_stays):
        emit("door.built", order)
        was = nothing_stays()

        what_if(order, event="door.opened")

        assert nothing_stays() == was
        assert emit("door.opened", order).moved

    def test_raises_what_the_event_would_be_refused_for(self, order, nothing_stays):
        emit("door.built", order)
        was = nothing_stays()

        with pytest.raises(MoveNotAllowed):
            what_if(order, event="door.broken")

        assert nothing_stays() == was

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"note": "x"}, InvalidInput),
            ({"id": 5}, InvalidInput),
            ({"nothing": 5}, InvalidInput),
            ({"ships_at": "soon"}, InvalidInput),
            ({"ships_at": "2027-01-01T00:00:00"}, NaiveDatetime),
            ({"ships_at": "9999-12-31T00:00:00+00:00"}, DateOutOfRange),
        ],
    )
    def test_refuses_what_is_no_anchor_or_no_time_naming_the_field(self, order, fields, error, nothing_stays):
        was = nothing_stays()

        with pytest.raises(error, match=next(iter(fields))):
            what_if(order, fields=fields)

        assert nothing_stays() == was

    @pytest.mark.parametrize(
        "ref", [EntityRef("testapp.order", "999"), EntityRef("testapp.order", "x"), EntityRef("a.b", "1")]
    )
    def test_refuses_what_is_not_there(self, ref):
        with pytest.raises(WrongEntity):
            what_if(ref, event="order.placed")
