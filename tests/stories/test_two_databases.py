"""Two databases at once: a timeline of an entity on the second one runs there, and only there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command

from tests.testapp.models import Order
from timeline import Timeline, after, at, task
from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import cancel, emit, explain, foreseen, schedule
from timeline.store.triggers import missing_triggers
from timeline.testing import StoryClock, expect, only_timelines

pytestmark = pytest.mark.django_db(databases=["default", "other"])


class Elsewhere(Timeline):
    """Ships, thanks, and ends when it is paid."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.paid": "paid"}

    @task(at("ships_at"))
    def ship(self, order: Order) -> str:
        return str(order._state.db)

    @task(after(ship, days=1))
    def thank(self, order: Order) -> None: ...

    @task()
    def call(self, order: Order) -> None: ...


@pytest.fixture
def clock():
    """Story time that runs the tasks of the second database."""
    with StoryClock(using="other") as clock, only_timelines(Elsewhere):
        yield clock


@pytest.fixture
def order(clock):
    """An order on the second database; one of the same key is on the first."""
    Order.objects.using("default").create(pk=7, ships_at=clock.now + timedelta(days=1))
    return Order.objects.using("other").create(pk=7, ships_at=clock.now + timedelta(days=3))


class TestATimelineOnASecondDatabase:
    def test_runs_there(self, order, clock):
        emit("order.placed", order)

        ran = clock.advance(days=5)

        assert [(row.task_name, row.result) for row in ran] == [("ship", "other"), ("thank", None)]
        expect(order, using="other").completed("ship").completed("thank")

    def test_leaves_no_row_on_the_first(self, order, clock):
        emit("order.placed", order)
        clock.advance(days=2)

        for model in (Event, TimelineRun, ScheduledTask, LogEntry):
            assert not model.objects.using("default").exists()

    def test_follows_its_own_entity(self, order, clock):
        emit("order.placed", order)
        Order.objects.using("default").get(pk=7).save()

        order.ships_at += timedelta(days=1)
        order.save()

        expect(order, using="other").scheduled("ship", at=order.ships_at)

    def test_answers_every_verb_there(self, order, clock):
        emit("order.placed", order)
        made = schedule("elsewhere.call", order, at=clock.now).task

        [cancelled] = cancel(made, reason="no phone")

        assert cancelled._state.db == "other"
        assert [item.task_key for item in foreseen(order)] == ["elsewhere.thank"]
        assert "no phone" in explain(cancelled)

    def test_ends_there(self, order, clock):
        emit("order.placed", order)
        emit("order.paid", order)

        expect(order, using="other").rows(("ship", "cancelled", "paid"))

    def test_is_guarded_there(self, db):
        assert missing_triggers("other") == []

    def test_is_explained_there(self, order, clock, capsys):
        emit("order.placed", order)

        call_command("timeline_explain", "testapp.order", "7", "--database", "other")

        assert "elsewhere.ship" in capsys.readouterr().out
