"""A webhook is in the trace of what it tells of."""

from __future__ import annotations

import pytest

from tests.otel.tales import Tale
from tests.webhooks.conftest import _loopback, _server, receiver  # noqa: F401 (fixtures)
from tests.webhooks.receiving import Told
from timeline.shortcuts import emit
from timeline.testing import StoryClock, only_timelines
from timeline.webhooks.models import Delivery
from timeline.webhooks.opening import open_endpoint
from timeline.webhooks.send import WebhookSender


@pytest.fixture
def clock(db, now):
    with only_timelines(Tale, Told), StoryClock(now) as clock:
        yield clock


@pytest.fixture
def tell(receiver, clock):  # noqa: F811
    """Open an endpoint for topics, and send what is due."""

    def opened(topic):
        open_endpoint(url=f"{receiver.url}/token-4111", topics=[topic], now=clock.now, using="default")
        return lambda: WebhookSender("default").drain()

    return opened


class TestAWebhook:
    def test_of_a_task_is_in_the_trace_of_its_event(self, tell, clock, order, spans):
        send = tell("task.completed.tale.pay")
        emit("tale.begun", order)
        clock.advance(seconds=1)
        assert send() == 1

        post, begun = spans.one("POST"), spans.one("emit tale.begun")
        assert (post["trace"], post["parent"], post["kind"]) == (begun["trace"], begun["id"], "CLIENT")
        assert post["attributes"] == {
            "http.request.method": "POST",
            "server.address": "127.0.0.1",
            "http.response.status_code": 204,
            "messaging.message.id": Delivery.objects.get().message_id,
            "timeline.webhook.topic": "task.completed",
            "timeline.webhook.attempt": 1,
        }
        assert spans.one("run tale.pay")["end"] < post["end"]

    def test_of_a_move_is_in_the_trace_of_the_event_that_moved(self, tell, clock, order, spans):
        send = tell("told")
        emit("told.begun", order)
        emit("told.asked", order)
        send()

        assert spans.one("POST")["parent"] == spans.one("emit told.asked")["id"]

    def test_that_fails_says_so(self, tell, receiver, clock, order, spans):  # noqa: F811
        send = tell("told")
        receiver.answer = lambda _request: 500
        emit("told.begun", order)
        emit("told.asked", order)
        with clock.failing():
            send()

        post = spans.one("POST")
        assert (post["status"], post["attributes"]["error.type"]) == ("ERROR", "500")

    def test_tells_nobody_the_path_it_goes_to(self, tell, clock, order, spans):
        send = tell("told")
        emit("told.begun", order)
        emit("told.asked", order)
        send()

        assert spans.one("POST")
        assert "4111" not in repr(spans.all())
