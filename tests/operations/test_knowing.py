"""Events that no timeline knows: told of once, or refused."""

from __future__ import annotations

import logging
from warnings import catch_warnings, simplefilter

import pytest
from django.core import mail
from django.utils import translation

from tests.acting import nothing_is_written
from tests.testapp.models import (
    Account,
    Badge,
    Customer,
    CustomerProxy,
    Employee,
    Order,
    Parcel,
    Reseller,
)
from timeline import Timeline, after, task
from timeline.exceptions import InvalidInput, UnknownEvent, UnknownEventWarning
from timeline.models import Event
from timeline.operations import unknown_events
from timeline.operations.unknown_events import refuse_unknown_event
from timeline.shortcuts import emit, emit_many, what_if
from timeline.testing import only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.returned": "returned"}

    @task(after(days=1))
    def pack(self, order): ...


class Contract(Timeline):
    entity = "testapp.Account"
    starts_on = "account.opened"

    @task(after(days=1))
    def greet(self, account): ...


class Care(Timeline):
    entity = "testapp.Customer"
    starts_on = "customer.won"

    @task(after(days=1))
    def greet(self, customer): ...


class Night(Timeline):
    starts_on = "night.fell"

    @task(after(hours=1))
    def sweep(self): ...


@pytest.fixture(autouse=True)
def _told(db, monkeypatch, settings):
    monkeypatch.setattr(unknown_events, "_told", set())
    settings.DEBUG = True
    with only_timelines(Delivery, Contract, Care, Night):
        yield


@pytest.fixture
def warnings(caplog):
    """What was told, as it was logged."""

    def said() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]

    return said


class TestWhatIsTold:
    def test_names_the_event_and_the_remedy(self, order, warnings):
        assert emit("order.plcaed", order).recorded

        assert warnings() == [
            "No timeline about testapp.order knows the event 'order.plcaed': it is recorded, and nothing else "
            "happens. Did you mean 'order.placed'? If it is meant to be recorded only, name it in "
            "TIMELINE['RECORDED_EVENTS']."
        ]

    def test_names_exits_that_are_near(self, order, warnings):
        emit("order.retruned", order)

        assert "Did you mean 'order.returned'?" in warnings()[0]

    def test_names_nothing_where_nothing_is_near(self, order, warnings):
        emit("something.else", order)

        assert "Did you mean" not in warnings()[0]

    def test_says_of_which_models_the_event_is_known(self, warnings):
        emit("order.placed", Parcel.objects.create())

        assert "It is known for testapp.order." in warnings()[0]

    def test_is_told_once(self, order, warnings):
        for _time in range(3):
            emit("order.plcaed", order)

        assert len(warnings()) == 1

    def test_is_told_of_each_name(self, order, warnings):
        emit("order.plcaed", order)
        emit("order.palced", order)

        assert len(warnings()) == 2

    def test_is_told_once_for_many(self, warnings):
        emit_many("order.plcaed", [Order.objects.create() for _number in range(3)], batch_size=1)

        assert len(warnings()) == 1

    def test_is_told_of_the_systems_events(self, warnings):
        emit("night.fel", None)

        assert warnings()[0].startswith("No timeline about the system knows the event 'night.fel'")


class TestWhatIsNotTold:
    @pytest.mark.parametrize("name", ["order.placed", "order.returned"])
    def test_of_starts_and_exits(self, order, name, warnings):
        emit(name, order)

        assert warnings() == []

    @pytest.mark.parametrize("model", [Account, Customer])
    @pytest.mark.parametrize("name", ["account.opened", "customer.won"])
    def test_of_what_another_model_of_the_family_knows(self, model, name, warnings):
        emit(name, model.objects.create())

        assert warnings() == []

    @pytest.mark.parametrize("model", [Account, Badge, Customer, CustomerProxy, Employee, Reseller])
    def test_of_what_a_model_far_off_in_the_family_knows(self, model, warnings):
        """A sibling, or one across a link that is no primary key: a customer may be an employee, too, and have a badge."""

        class Lost(Timeline):
            entity = "testapp.Badge"
            exits = {"badge.lost": "lost"}

            @task(after(days=1))
            def replace(self, badge): ...

        with only_timelines(Care, Lost):
            for name in ("customer.won", "badge.lost"):
                emit(name, model.objects.create())

        assert warnings() == []

    def test_of_the_systems_own(self, warnings):
        emit("night.fell", None)

        assert warnings() == []

    def test_of_what_is_recorded_on_purpose(self, order, settings, warnings):
        settings.TIMELINE = {"RECORDED_EVENTS": ["order.seen"]}

        emit("order.seen", order)

        assert warnings() == []

    def test_where_debug_is_off(self, order, settings, warnings):
        settings.DEBUG = False

        emit("order.plcaed", order)

        assert warnings() == []

    def test_of_what_is_known_outside_of_the_block(self, order, warnings):
        """A test that keeps to some timelines may emit what the others know."""
        with only_timelines():
            emit("order.placed", order)

        assert warnings() == []


class TestTests:
    """While tests run, what is not in the log is a warning of Python's."""

    @pytest.fixture(autouse=True)
    def _as_deployed(self, settings):
        settings.DEBUG = False

    def test_are_warned_at_the_line_that_emits(self, order, warnings):
        with pytest.warns(UnknownEventWarning, match=r"Did you mean 'order\.placed'\?") as caught:
            emit("order.plcaed", order)

        assert [each.filename for each in caught] == [__file__]
        assert warnings() == []

    def test_are_not_warned_of_what_is_known_or_recorded_on_purpose(self, order, settings):
        settings.TIMELINE = {"RECORDED_EVENTS": ["order.seen"]}

        with catch_warnings():
            simplefilter("error")
            emit("order.placed", order)
            emit("order.seen", order)

    def test_nothing_is_said_where_no_test_runs(self, order, warnings, monkeypatch):
        monkeypatch.delattr(mail, "outbox")

        with catch_warnings():
            simplefilter("error")
            emit("order.plcaed", order)

        assert warnings() == []


class TestRefuseUnknown:
    """What comes from outside, and what is only tried."""

    def test_refuses_what_no_timeline_knows(self):
        with pytest.raises(UnknownEvent) as caught:
            refuse_unknown_event("order.plcaed", ["testapp.order"])

        assert caught.value.near == ["order.placed"]

    @pytest.mark.parametrize("strict", [None, True])
    @pytest.mark.parametrize("name", ["order.placed", "order.returned", "order.seen"])
    def test_takes_what_is_known_or_recorded_on_purpose(self, settings, strict, name):
        settings.TIMELINE = {"STRICT_EVENTS": strict, "RECORDED_EVENTS": ["order.seen"]}

        refuse_unknown_event(name, ["testapp.order"])

    def test_takes_everything_where_the_setting_is_off(self, settings):
        settings.TIMELINE = {"STRICT_EVENTS": False}

        refuse_unknown_event("order.plcaed", ["testapp.order"])

    def test_what_if_refuses_it(self, order):
        with pytest.raises(UnknownEvent):
            what_if(order, event="order.plcaed")

        assert nothing_is_written()

    def test_what_if_tries_it_where_the_setting_is_off(self, order, settings):
        settings.TIMELINE = {"STRICT_EVENTS": False}

        assert what_if(order, event="order.plcaed") == []


class TestStrictEvents:
    @pytest.fixture(autouse=True)
    def _strict(self, settings):
        settings.DEBUG = False
        settings.TIMELINE = {"STRICT_EVENTS": True, "RECORDED_EVENTS": ["order.seen"]}

    def test_refuses_an_event_that_no_timeline_knows(self, order):
        with pytest.raises(UnknownEvent) as caught:
            emit("order.plcaed", order)

        assert str(caught.value) == (
            "name: No timeline about testapp.order knows the event 'order.plcaed'. Did you mean "
            "'order.placed'? If it is meant to be recorded only, name it in TIMELINE['RECORDED_EVENTS']."
        )
        assert isinstance(caught.value, InvalidInput)
        assert (caught.value.name, caught.value.near) == ("order.plcaed", ["order.placed"])
        assert nothing_is_written()

    def test_refuses_each_time(self, order):
        for _time in range(2):
            with pytest.raises(UnknownEvent):
                emit("order.plcaed", order)

    def test_refuses_many(self):
        orders = [Order.objects.create() for _number in range(3)]

        with pytest.raises(UnknownEvent):
            emit_many("order.plcaed", orders)

        assert nothing_is_written()

    def test_refuses_many_of_which_one_is_of_another_model(self, order):
        with pytest.raises(UnknownEvent, match=r"testapp\.parcel"):
            emit_many("order.placed", [order, Parcel.objects.create()])

    def test_takes_what_is_known_or_recorded_on_purpose(self, order):
        emit("order.placed", order)
        emit("order.seen", order)

        assert Event.objects.count() == 2

    def test_says_so_in_german(self, order):
        with pytest.raises(UnknownEvent) as caught, translation.override("de"):
            emit("order.plcaed", order)

        with translation.override("de"):
            assert caught.value.problem == ("Keine Zeitlinie zu testapp.order kennt das Ereignis 'order.plcaed'.")
            assert caught.value.remedy.startswith("Ist 'order.placed' gemeint?")
