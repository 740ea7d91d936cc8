"""Emit: what is refused names its argument, and leaves nothing behind."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

import pytest

from tests.acting import nothing_is_written
from tests.testapp.models import Booking, Country, Order, Parcel
from timeline import Timeline, after, task
from timeline.exceptions import (
    DateOutOfRange,
    InvalidInput,
    NaiveDatetime,
    NotPlainJSON,
    PayloadTooLarge,
    WrongEntity,
)
from timeline.models import EntityRef
from timeline.payloads import MAX_BYTES
from timeline.testing import only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(days=1))
    def pack(self, order):
        return None


@pytest.fixture(autouse=True)
def _only_this(db):
    with only_timelines(Delivery):
        yield


class TestBadInput:
    @pytest.mark.parametrize("name", ["", "x" * 101, "order placed", "order\nplaced", None, 7, "timeline.erased"])
    def test_of_a_name_is_refused(self, emit_at, order, now, name):
        with pytest.raises(InvalidInput, match=r"^name: "):
            emit_at(name, order, now)

        assert nothing_is_written()

    @pytest.mark.parametrize("key", ["x" * 201, None, 7, "half \ud800", "nul \x00"])
    def test_of_a_key_is_refused(self, emit_at, order, now, key):
        with pytest.raises(InvalidInput, match=r"^key: "):
            emit_at("order.placed", order, now, key=key)

        assert nothing_is_written()

    @pytest.mark.parametrize(
        ("payload", "error"),
        [
            (["a"], InvalidInput),
            ("text", InvalidInput),
            (None, InvalidInput),
            ({"at": datetime(2026, 1, 1)}, NotPlainJSON),  # noqa: DTZ001 (any date is no JSON)
            ({"sum": Decimal(1)}, NotPlainJSON),
            ({1: "n"}, NotPlainJSON),
            ({"n": float("inf")}, NotPlainJSON),
            ({"text": "a\x00b"}, NotPlainJSON),
            ({"text": "x" * MAX_BYTES}, PayloadTooLarge),
        ],
    )
    def test_of_a_payload_is_refused(self, emit_at, order, now, payload, error):
        with pytest.raises(error, match=r"^payload: "):
            emit_at("order.placed", order, now, payload=payload)

        assert nothing_is_written()

    def test_takes_a_payload_as_large_as_may_be(self, emit_at, order, now):
        payload = {"t": "x" * (MAX_BYTES - len('{"t": ""}'))}

        assert emit_at("order.placed", order, now, payload=payload).recorded

    def test_of_an_unsaved_entity_is_refused(self, emit_at, now):
        with pytest.raises(WrongEntity, match="Save it first"):
            emit_at("order.placed", Order(), now)

        assert nothing_is_written()

    @pytest.mark.parametrize(
        "entity",
        [
            Order(pk=999),
            Parcel(pk=UUID(int=7)),
            Country(code="XX"),
            EntityRef("testapp.order", "999"),
            EntityRef("testapp.order", "abc"),
            EntityRef("no.model", "1"),
        ],
        ids=str,
    )
    def test_of_an_entity_that_is_not_in_the_database_is_refused(self, emit_at, now, entity):
        with pytest.raises(WrongEntity, match="is not in the database"):
            emit_at("order.placed", entity, now)

        assert nothing_is_written()

    @pytest.mark.parametrize("saved", [True, False])
    def test_of_an_entity_whose_key_has_several_columns_is_refused(self, emit_at, now, saved):
        booking = Booking.objects.create(hotel=1, number=2) if saved else Booking()

        with pytest.raises(WrongEntity, match="has several columns"):
            emit_at("order.placed", booking, now)

        assert nothing_is_written()

    @pytest.mark.parametrize("key", ["(1, 2)", "[1, 2]", "x"])
    def test_of_its_name_is_refused(self, emit_at, now, key):
        Booking.objects.create(hotel=1, number=2)

        with pytest.raises(WrongEntity, match="is not in the database"):
            emit_at("order.placed", EntityRef("testapp.booking", key), now)

        assert nothing_is_written()

    @pytest.mark.parametrize("entity", ["order 1", 7, Order, Country(code=""), Country(code="x" * 101), Parcel(id="x")])
    def test_of_something_that_is_no_entity_is_refused(self, emit_at, now, entity):
        with pytest.raises(WrongEntity):
            emit_at("order.placed", entity, now)

        assert nothing_is_written()

    @pytest.mark.parametrize(
        ("occurred_at", "error"),
        [
            (datetime(2026, 1, 1), NaiveDatetime),  # noqa: DTZ001 (that is the case)
            ("2026-01-01", NaiveDatetime),
            (datetime.fromisoformat("1969-12-31T23:59:59+00:00"), DateOutOfRange),
            (datetime.fromisoformat("9000-01-01T00:00:00+00:00"), DateOutOfRange),
        ],
    )
    def test_of_the_time_is_refused(self, emit_at, order, now, occurred_at, error):
        with pytest.raises(error, match=r"^occurred_at: "):
            emit_at("order.placed", order, now, occurred_at=occurred_at)

        assert nothing_is_written()

    def test_that_shows_only_in_the_plan_undoes_the_event(self, emit_at, order, now):
        """The start of the run is fine, but a day later it is out of range."""
        last = datetime.fromisoformat("8999-12-31T12:00:00+00:00")

        with pytest.raises(DateOutOfRange):
            emit_at("order.placed", order, now, occurred_at=last)

        assert nothing_is_written()
