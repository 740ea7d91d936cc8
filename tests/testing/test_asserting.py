"""Expectations: pass when they hold, and fail with a picture when they do not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.testapp.models import Badge, Employee, Order
from timeline import Discard, Retry, RetryAfter, Timeline, after, task
from timeline.exceptions import NaiveDatetime
from timeline.shortcuts import emit, start
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


class Elsewhere(Timeline):
    """About other entities."""

    entity = "accounts.User"

    @task()
    def elsewhere(self, user: object) -> None: ...


class OfBadges(Timeline):
    """About badges, of which an employee is one by another key."""

    entity = "testapp.Badge"

    @task(after(days=1))
    def read(self, badge: Badge) -> None: ...

    @task()
    def unread(self, badge: Badge) -> None: ...


class OfAccounts(Timeline):
    """About accounts, of which an employee is one as well."""

    entity = "testapp.Account"

    @task()
    def unpaid(self, account: object) -> None: ...


# A misspelt task, in each sentence that takes one; most would be true, as there is no such task.
MISSPELT = [
    lambda e: e.never("lastt"),
    lambda e: e.never("life.lastt"),
    lambda e: e.never("lfie.last"),
    lambda e: e.completed("lastt", times=0),
    lambda e: e.completed("lastt"),
    lambda e: e.scheduled("lastt"),
    lambda e: e.retryable("lastt"),
    lambda e: e.discarded("lastt"),
    lambda e: e.cancelled("lastt"),
    lambda e: e.open("lastt"),
    lambda e: e.foreseen("lastt"),
    lambda e: e.rows(("lastt", "completed")),
]


class TestExpectOfAMisspeltTask:
    @pytest.mark.parametrize("sentence", MISSPELT)
    def test_is_refused_with_what_may_be_meant(self, lived, sentence):
        with pytest.raises(LookupError, match=r"Did you mean 'life\.last'"):
            sentence(expect(lived))

    def test_is_refused_with_all_that_are_known_where_none_looks_like_it(self, lived):
        with pytest.raises(LookupError, match=r"Known: life\.again, life\.done"):
            expect(lived).never("zzz")

    def test_is_refused_where_only_timelines_about_others_have_it(self, lived):
        with only_timelines(Life, Elsewhere), pytest.raises(LookupError, match=r"about testapp\.order"):
            expect(lived).never("elsewhere")

    def test_is_known_where_the_row_is_there_or_it_was_put_aside(self, lived):
        with only_timelines():
            expect(lived).completed("life.done").never("last")

    def test_is_known_where_a_timeline_about_one_of_its_parents_has_it(self, db, clock):
        with only_timelines(OfAccounts, OfBadges):
            employee = Employee.objects.create()
            start(OfBadges, employee)

            expect(employee).scheduled("read").never("unread").never("unpaid")

    def test_is_known_where_only_its_row_is(self, order, make_task):
        make_task(entity_label="testapp.order", entity_id=str(order.pk), task_key="of.old", state="completed")

        expect(order).completed("old")


class TestPictureOfAFailure:
    def test_names_the_class_of_the_error(self, order, clock, monkeypatch):
        monkeypatch.setattr(Broken, "error", KeyError("name"))
        with only_timelines(Broken), clock.failing():
            emit("order.placed", order)
            clock.run_due()

            with pytest.raises(AssertionError) as failure:
                expect(order).completed("break_down")

        assert "discarded (KeyError: 'name')" in str(failure.value)


class Broken(Timeline):
    """Raises."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    error: Exception = Exception()

    @task(after(), retry=Retry(max_attempts=1))
    def break_down(self, order: Order) -> None:
        raise Broken.error


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


class TestMoments:
    """A naive one is never the moment of a row, though the picture would show the same time."""

    @pytest.mark.parametrize("method", ["scheduled", "retryable"])
    def test_are_refused_without_a_time_zone(self, lived, clock, method):
        naive = clock.now.replace(tzinfo=None)

        with pytest.raises(NaiveDatetime, match="at"):
            getattr(expect(lived), method)("later", at=naive)
