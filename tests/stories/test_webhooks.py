"""A receiver is down for a day, and is then told in order; a sender is killed under way, and what it sent is sent again."""

from __future__ import annotations

from datetime import timedelta

from tests.testapp.models import Order
from tests.webhooks.conftest import *  # noqa: F403 (its fixtures)
from tests.webhooks.conftest import _loopback, _server  # noqa: F401
from timeline.shortcuts import emit
from timeline.webhooks.delivery_rows import claim
from timeline.webhooks.models import Delivery, State
from timeline.webhooks.send import WebhookSender


def deliver():
    return WebhookSender("default").drain()


class TestAReceiverThatIsDownForADay:
    def test_is_then_told_of_all_in_order_within_minutes(self, endpoint_for, receiver, clock):
        endpoint = endpoint_for("told")
        receiver.answer = lambda _request: 502
        orders = [Order.objects.create() for _each in range(5)]
        for event in ("told.begun", "told.asked", "told.answered"):
            for order in orders:
                emit(event, order)
            for _part in range(8):
                deliver()
                clock.advance(hours=1)
        endpoint.refresh_from_db()
        assert endpoint.is_paused
        assert not Delivery.objects.filter(state=State.DELIVERED).exists()

        receiver.reset()
        clock.advance(minutes=10)
        deliver()

        told = [(request.data["entity"]["id"], request.data["seq"]) for request in receiver.requests]
        assert sorted(told) == sorted((str(order.pk), seq) for order in orders for seq in (1, 2))
        for order in orders:
            assert [seq for key, seq in told if key == str(order.pk)] == [1, 2]


class TestASenderThatIsKilledUnderWay:
    def test_has_sent_what_another_sends_again_with_the_same_id(self, endpoint_for, receiver, clock):
        """Its lease runs out, by the real clock; until then nobody else takes it, nor what is behind it."""
        endpoint_for("told")
        order = Order.objects.create()
        for event in ("told.begun", "told.asked", "told.answered"):
            emit(event, order)
        lost = claim(lambda _endpoint: 1, now=clock.now, using="default")
        assert len(lost.deliveries) == 1

        assert deliver() == 0
        clock.advance(minutes=1)
        Delivery.objects.filter(pk=lost.deliveries[0].pk).update(leased_until=clock.now - timedelta(days=9000))
        deliver()

        assert [request.data["seq"] for request in receiver.requests] == [1, 2]
        assert receiver.requests[0].id == lost.deliveries[0].message_id
