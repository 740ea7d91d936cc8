"""Each way in which a run comes into a state is told: also a set of moves, an adoption, and a state that got another name."""

from __future__ import annotations

import json

import pytest

from tests.testapp.models import Order
from tests.webhooks.receiving import Told
from timeline import Machine, never
from timeline.features.machines.adopt_rows import adopt_rows, plan_adoption
from timeline.features.machines.edges import forget_edges, see_edges
from timeline.features.machines.plans import change_runs, plan_change
from timeline.features.maintenance.relabel import relabel
from timeline.shortcuts import emit, emit_many, erase
from timeline.testing import only_timelines
from timeline.webhooks.disabling import disable, replay
from timeline.webhooks.models import Attempt, Delivery, Disabled, Ordered, State


class Earlier(Machine):
    """The machine before a state got the name ``dropped``. It tells nothing."""

    name = "told"
    entity = "testapp.Order"
    starts_on = "told.begun"
    initial = "new"
    table = {"new": {"told.lost": "lost"}, "lost": {"told.found": "done"}, "done": {}}
    timers = {("new", "lost"): never}


@pytest.fixture(autouse=True)
def _edges():
    forget_edges("default")
    yield
    forget_edges("default")


def told():
    """What was written, in order, as (event, from, state)."""
    facts = [json.loads(body)["data"] for body in Delivery.objects.order_by("pk").values_list("body", flat=True)]
    return [(fact["event"], fact["from"], fact["state"]) for fact in facts]


class TestOnEntered:
    def test_tells_a_set_of_moves(self, endpoint_for):
        endpoint_for("told")
        orders = Order.objects.bulk_create([Order(), Order()])
        emit_many("told.begun", orders)

        emit_many("told.dropped", orders)

        assert told() == [("told.dropped", "new", "dropped")] * 2

    def test_tells_that_a_row_was_adopted(self, endpoint_for, clock):
        endpoint_for("told")
        Order.objects.create(note="closed")
        Order.objects.create(note="open")
        meaning = {"closed": "done", "open": "quiet"}
        planned = plan_adoption(machine="told", column="note", states=meaning, with_ended=True, using="default")

        list(adopt_rows(planned, clock=lambda _using: clock.now, using="default"))

        assert told() == [("adopted", "", "done")]

    def test_tells_that_a_state_got_another_name(self, endpoint_for, clock):
        endpoint_for("told")
        with only_timelines(Earlier):
            see_edges(using="default")
            order = Order.objects.create()
            emit("told.begun", order)
            emit("told.lost", order)
        forget_edges("default")
        planned = plan_change(Told.definition, renamed={"lost": "dropped"}, actor="ada")

        list(change_runs(planned, clock=lambda _using: clock.now, using="default"))

        assert told() == [("renamed", "lost", "dropped")]

    def test_tells_no_endpoint_that_is_disabled(self, endpoint_for, clock):
        """Nor is anything kept for it: what waited is cancelled, and what comes is not written."""
        endpoint, order = endpoint_for("told"), Order.objects.create()
        emit("told.begun", order)
        emit("told.asked", order)

        disable(endpoint, Disabled.OPERATOR, now=clock.now, using="default")
        emit("told.answered", order)

        assert [delivery.state for delivery in Delivery.objects.all()] == [State.CANCELLED]


class TestOnErased:
    def test_blanks_what_was_told_of_them_and_what_was_answered(self, endpoint_for, clock):
        endpoint = endpoint_for("told")
        orders = Order.objects.bulk_create([Order(), Order()])
        emit_many("told.begun", orders)
        emit_many("told.dropped", orders)
        now = {"ended_at": clock.now, "state": State.DELIVERED}
        Delivery.objects.update(**now)
        for delivery in Delivery.objects.all():
            Attempt.objects.create(delivery=delivery, number=1, at=clock.now, duration_ms=1, answer="hello")

        done = erase(orders[0], reason="she asked for it")

        first, second = Delivery.objects.order_by("pk")
        assert (first.body, second.body != "") == ("", True)
        assert list(Attempt.objects.order_by("pk").values_list("answer", flat=True)) == ["", "hello"]
        assert (done.rows["delivery"], done.rows["attempt"]) == (1, 1)
        assert replay(endpoint, now=clock.now, using="default") == 1


class TestOnRelabelled:
    def test_lets_deliveries_follow_and_keep_their_order(self, endpoint_for, clock):
        """What is kept of them is found by the new label, also when they are to be forgotten."""
        for ordered in (Ordered.ENTITY, Ordered.ALL, Ordered.NO):
            endpoint_for("told", ordered=ordered)
        order = Order.objects.create()
        emit("told.begun", order)
        emit("told.dropped", order)
        new = set(Delivery.objects.values_list("order_key", flat=True))
        Delivery.objects.update(entity_label="shop.order")
        Delivery.objects.filter(order_key=f"testapp.order:{order.pk}").update(order_key=f"shop.order:{order.pk}")

        relabel(old="shop.order", new="testapp.order", using="default")

        assert set(Delivery.objects.values_list("order_key", flat=True)) == new
        Delivery.objects.update(ended_at=clock.now, state=State.DELIVERED)
        assert erase(order, reason="she asked for it", cancel=True).rows["delivery"] == 3

    def test_in_a_migration_before_its_table_is_there_does_nothing(self, endpoint_for, monkeypatch):
        monkeypatch.setattr(Delivery._meta, "db_table", "not_there_yet")

        assert relabel(old="shop.order", new="testapp.order", using="default") == (0, 0, 0)
