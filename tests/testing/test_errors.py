"""Errors of handlers: raised out of the clock once their outcome is recorded, unless the test is about failures."""

from __future__ import annotations

import traceback
from datetime import timedelta

import pytest
from django.db import IntegrityError

from tests.testapp.models import Effect, Order
from timeline import Cancel, Discard, Machine, Retry, RetryAfter, Timeline, after, on, task
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import emit, schedule
from timeline.testing import StoryClock, expect, only_timelines


class Fragile(Timeline):
    """Raises what the test has put into ``raised``."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    raised: Exception | None = None

    @task(after(days=1), retry=Retry(max_attempts=2, base=timedelta(hours=1), jitter=0))
    def atomic(self, order: Order) -> None:
        Effect.objects.create(name="atomic")
        self.fail()

    @task(after(days=2), atomic=False)
    def plain(self, order: Order) -> None: ...

    @task(atomic=False, retry=Retry(max_attempts=1))
    def outside(self, order: Order) -> None:
        self.fail()

    @task(atomic="shared", retry=Retry(max_attempts=1))
    def shared(self, order: Order) -> None:
        self.fail()

    @task(bulk=10, retry=Retry(max_attempts=1))
    def bulk(self, orders: list[Order]) -> None:
        self.fail()

    @task(bulk=10, atomic=False, retry=Retry(max_attempts=1))
    def each_apart(self, orders: list[Order]) -> dict[Order, object]:
        return dict.fromkeys(orders, Fragile.raised)

    @task(atomic=False, retry=Retry(max_attempts=1))
    async def side_by_side(self, order: Order) -> None:
        self.fail()

    @task(only_if=lambda order: Fragile.fail(), retry=Retry(max_attempts=1))
    def guarded(self, order: Order) -> None: ...

    @task(retry=Retry(max_attempts=1))
    def misanswers(self, order: Order) -> object:
        return object()

    @staticmethod
    def fail() -> bool:
        if Fragile.raised is not None:
            raise Fragile.raised
        return True


@staticmethod
def break_a_constraint() -> None:
    """Let the database raise."""
    for _twice in range(2):
        Effect.objects.create(pk=1, name="one")


@pytest.fixture(autouse=True)
def _fragile(monkeypatch):
    monkeypatch.setattr(Fragile, "raised", KeyError("name"))
    with only_timelines(Fragile):
        yield


@pytest.fixture
def placed(order, clock):
    emit("order.placed", order)
    return order


class TestRaises:
    def test_the_error_itself_with_its_traceback(self, placed, clock):
        with pytest.raises(KeyError) as raised:
            clock.advance(days=1)

        assert raised.value is Fragile.raised
        assert "raise Fragile.raised" in "".join(traceback.format_exception(raised.value))

    def test_once_the_outcome_is_recorded_at_the_time_of_the_task(self, placed, clock):
        begin = clock.now

        with pytest.raises(KeyError):
            clock.advance(days=9)

        assert clock.now == begin + timedelta(days=1)
        expect(placed).retryable("atomic", at=begin + timedelta(days=1, hours=1)).scheduled("plain")
        assert not Effect.objects.exists()

    def test_says_whose_error_it_is_and_what_to_do(self, placed, clock):
        with pytest.raises(KeyError) as raised:
            clock.advance(days=1)

        [note] = raised.value.__notes__
        assert f"attempt 1 at fragile.atomic of testapp.order {placed.pk}" in note
        assert "raises=False" in note

    def test_again_at_each_attempt_and_then_goes_on(self, placed, clock):
        for _attempt in range(2):
            with pytest.raises(KeyError):
                clock.advance(days=9)

        clock.advance(days=9)

        expect(placed).rows(("atomic", "discarded", "error"), ("plain", "completed"))

    @pytest.mark.parametrize("move", ["run_due", "run_next", "run_until"])
    def test_out_of_each_move(self, order, clock, move):
        schedule("fragile.atomic", order, at=clock.now)

        with pytest.raises(KeyError):
            getattr(clock, move)(*([clock.now] if move == "run_until" else []))

    @pytest.mark.parametrize("name", ["outside", "shared", "bulk", "each_apart", "side_by_side", "guarded"])
    def test_of_each_kind_of_handler_and_of_guards(self, order, clock, name):
        schedule(f"fragile.{name}", order, at=clock.now)

        with pytest.raises(KeyError):
            clock.run_due()

        expect(order).discarded(name, reason="error")

    def test_of_a_result_that_cannot_be_kept(self, order, clock):
        schedule("fragile.misanswers", order, at=clock.now)

        with pytest.raises(Exception, match="result"):
            clock.run_due()

    def test_of_the_database(self, order, clock, monkeypatch):
        monkeypatch.setattr(Fragile, "fail", break_a_constraint)
        schedule("fragile.shared", order, at=clock.now)

        with pytest.raises(IntegrityError):
            clock.run_due()

        expect(order).discarded("shared")

    @pytest.mark.parametrize(
        ("chosen", "state"),
        [(Cancel("no"), "cancelled"), (Discard("never"), "discarded"), (RetryAfter(timedelta(days=30)), "retryable")],
    )
    def test_not_what_a_handler_raises_to_choose_its_ending(self, placed, clock, monkeypatch, chosen, state):
        monkeypatch.setattr(Fragile, "raised", chosen)

        clock.advance(days=1)

        assert ScheduledTask.objects.get(task_key="fragile.atomic").state == state

    def test_nothing_where_the_clock_is_told_so(self, order):
        with StoryClock(raises=False) as clock:
            emit("order.placed", order)
            ran = clock.advance(days=9)

        assert [row.state for row in ran] == ["retryable", "discarded", "completed"]

    @pytest.mark.timeline(raises=False)
    def test_nothing_where_the_test_is_marked(self, placed, clock):
        clock.advance(days=9)

        expect(placed).discarded("atomic")

    @pytest.mark.timeline(raises=False)
    def test_nothing_of_any_clock_where_the_test_is_marked(self, order):
        with StoryClock() as clock:
            emit("order.placed", order)
            clock.advance(days=9)

        expect(order).discarded("atomic")


class TestFailing:
    def test_gives_the_errors_of_a_part_of_a_test(self, placed, clock):
        with clock.failing() as errors:
            clock.advance(days=1)

        assert errors == [Fragile.raised]
        with pytest.raises(KeyError):
            clock.advance(days=1)

    def test_is_told(self, placed, clock):
        with clock.failing():
            clock.advance(days=2)

        assert "Errors of handlers, not raised: KeyError in fragile.atomic (2)." in clock.told()


class Refused(Exception):
    """An answer, which is an event of the machine."""


class Asking(Machine):
    """Asks somebody, who refuses; its table has no answer to anything else."""

    entity = "testapp.Order"
    starts_on = "order.asked"
    initial = "asking"
    table = {"asking": {"refuse": "refused"}, "refused": {}}
    working = ("asking",)
    errors = {Refused: "refuse"}
    raised: Exception = Refused()

    @task(on("asking"), atomic=False, retry=Retry(max_attempts=1))
    def ask(self, order: Order) -> None:
        raise Asking.raised


class TestOfAMachine:
    @pytest.fixture(autouse=True)
    def _asking(self, order):
        with only_timelines(Asking):
            yield

    def test_not_an_error_that_is_an_answer(self, order, clock):
        emit("order.asked", order)

        clock.run_due()

        assert TimelineRun.objects.get().state == "refused"

    def test_an_error_that_is_none(self, order, clock, monkeypatch):
        monkeypatch.setattr(Asking, "raised", ZeroDivisionError())
        emit("order.asked", order)

        with pytest.raises(ZeroDivisionError):
            clock.run_due()
