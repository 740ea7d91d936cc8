"""Follow-ups that get no row though their predecessor has completed: what docs/how-to/declaring.md says of them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from timeline import Timeline, after, at, task
from timeline.models import ScheduledTask
from timeline.shortcuts import cancel, emit, explain, redrive
from timeline.testing import expect, only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(ship, weeks=1))
    def ask_for_a_review(self, order):
        if order.note == "it was broken":
            ship_at(order, self.now + timedelta(days=30))

    @task(after(ask_for_a_review, weeks=1))
    def thank(self, order): ...

    @task(after(days=365))
    def archive(self, order): ...


@pytest.fixture
def shipped(clock, order):
    """An order that was shipped: a review is to be asked for in a week."""
    with only_timelines(Delivery):
        ship_at(order, clock.now + timedelta(days=1))
        emit("order.placed", order)
        clock.advance(days=1)
        expect(order).completed("ship").scheduled("ask_for_a_review")
        yield order


def ship_at(order, moment):
    """The host says anew when to ship."""
    with transaction.atomic():
        order.ships_at = moment
        order.save(update_fields=["ships_at"])


def latest(name):
    """The row of a task that was made last."""
    return ScheduledTask.objects.filter(task_key=f"delivery.{name}").latest("revision")


class TestFollowUpThatAPersonCancelled:
    def test_stays_cancelled_when_its_predecessor_completes_again(self, shipped, clock):
        cancel(latest("ask_for_a_review"), reason="she has told us already", actor="ada")
        ship_at(shipped, clock.now + timedelta(days=3))

        clock.advance(days=60)

        expect(shipped).completed("ship", times=2).never("thank")
        assert (latest("ask_for_a_review").revision, latest("ask_for_a_review").state) == (1, "cancelled")
        assert "she has told us already" in explain(latest("ask_for_a_review"))

    def test_comes_back_by_a_redrive(self, shipped, clock):
        cancel(latest("ask_for_a_review"), reason="she has told us already", actor="ada")

        redrive(latest("ask_for_a_review"), reason="that was another order", actor="ada")
        clock.advance(days=60)

        expect(shipped).completed("ask_for_a_review").completed("thank")


class TestFollowUpOfATaskFurtherUpThatRunsAgain:
    def test_waits_until_all_above_have_completed_again(self, shipped, clock):
        clock.advance(days=7)
        expect(shipped).completed("ask_for_a_review").scheduled("thank")

        ship_at(shipped, clock.now + timedelta(days=30))

        assert (latest("thank").state, latest("thank").reason_code) == ("cancelled", "superseded")
        expect(shipped).foreseen("ask_for_a_review", "thank")
        clock.advance(days=30 + 7)
        expect(shipped).completed("ship", times=2).completed("ask_for_a_review", times=2).scheduled("thank")

    def test_gets_no_row_when_its_own_predecessor_completes_meanwhile(self, shipped, clock):
        """It is the handler of that one which has the order shipped again."""
        type(shipped).objects.filter(pk=shipped.pk).update(note="it was broken")

        clock.advance(days=7)

        expect(shipped).completed("ask_for_a_review").scheduled("ship").foreseen("ask_for_a_review", "thank")
        assert not ScheduledTask.objects.filter(task_key="delivery.thank").exists()
