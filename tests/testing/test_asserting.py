"""Expectations: pass when they hold, and fail with a picture when they do not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.testapp.models import Order
from timeline import Discard, RetryAfter, Timeline, after, task
from timeline.shortcuts import emit
from timeline.testing import expect, only_timelines


class Life(Timeline):
    """One task for each ending."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.paid": "paid"}

    @task(after(days=1))
    def done(self, order: Order) -> None: ...

    @task(after(days=1))
    def failed(self, order: Order) -> None:
        raise Discard("no such address")

    @task(after(days=1), only_if=lambda order: False)
    def refused(self, order: Order) -> None: ...

    @task(after(days=1))
    def again(self, order: Order) -> None:
        raise RetryAfter(timedelta(days=1))

    @task(after(days=9))
    def later(self, order: Order) -> None: ...

    @task(after(later, days=1))
    def last(self, order: Order) -> None: ...


@pytest.fixture
def lived(order, clock):
    """An order a day and a half into its life."""
    with only_timelines(Life):
        emit("order.placed", order)
        clock.advance(days=1, hours=12)
        yield order


ELSEWHEN = datetime(2030, 1, 1, tzinfo=UTC)

HOLDING = [
    lambda e: e.completed("done"),
    lambda e: e.completed("life.done", times=1),
    lambda e: e.completed("later", times=0),
    lambda e: e.completed("done", reason="done"),
    lambda e: e.completed("done", reason="shadow", times=0),
    lambda e: e.discarded("failed", reason="no such address"),
    lambda e: e.cancelled("refused", reason="guard"),
    lambda e: e.retryable("again"),
    lambda e: e.scheduled("later"),
    lambda e: e.never("last"),
    lambda e: e.foreseen("last"),
    lambda e: e.open("again", "later"),
    lambda e: e.rows(
        ("done", "completed"),
        ("failed", "discarded", "handler"),
        ("refused", "cancelled", "guard"),
        ("again", "retryable"),
        ("later", "scheduled"),
    ),
]

FAILING = [
    lambda e: e.completed("later"),
    lambda e: e.completed("done", times=2),
    lambda e: e.completed("done", reason="shadow"),
    lambda e: e.discarded("failed", reason="expired"),
    lambda e: e.cancelled("done"),
    lambda e: e.retryable("later"),
    lambda e: e.scheduled("again"),
    lambda e: e.scheduled("later", at=ELSEWHEN),
    lambda e: e.never("done"),
    lambda e: e.foreseen(),
    lambda e: e.foreseen("last", "done"),
    lambda e: e.open(),
    lambda e: e.open("again"),
    lambda e: e.open("again", "later", "done"),
    lambda e: e.rows(("done", "completed")),
]


class TestExpect:
    @pytest.mark.parametrize("sentence", HOLDING)
    def test_passes_what_holds(self, lived, sentence):
        expectation = expect(lived)

        assert sentence(expectation) is expectation

    @pytest.mark.parametrize("sentence", FAILING)
    def test_fails_what_does_not_with_a_picture(self, lived, sentence):
        with pytest.raises(AssertionError) as failure:
            sentence(expect(lived))

        shown = str(failure.value)
        assert "but this is the timeline" in shown
        assert "✓" in shown
        assert "life.later" in shown
        assert "── now:" in shown


class LifeInShadow(Life):
    """The same, in shadow."""

    name = "life"
    shadow = True


class TestExpectInShadow:
    @pytest.fixture
    def shadowed(self, order, clock):
        with only_timelines(LifeInShadow):
            emit("order.placed", order)
            clock.advance(days=1, hours=12)
            yield order

    def test_tells_what_would_have_run_from_what_ran(self, shadowed):
        expect(shadowed).completed("failed", reason="shadow", times=1).completed("done", reason="done", times=0)
        expect(shadowed).rows(
            ("done", "completed", "shadow"),
            ("failed", "completed", "shadow"),
            ("refused", "cancelled", "guard"),
            ("again", "completed", "shadow"),
            ("later", "scheduled"),
        )

    def test_does_not_take_the_one_for_the_other(self, shadowed):
        with pytest.raises(AssertionError, match="expected done completed because of 'done'"):
            expect(shadowed).completed("done", reason="done")
