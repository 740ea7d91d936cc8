"""Async views: each verb has a twin that they await."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient

from tests.testapp.models import Order
from timeline.exceptions import InvalidInput
from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun

pytestmark = [pytest.mark.urls("tests.hosts.views"), pytest.mark.usefixtures("clock", "delivery")]


@pytest.fixture
def post():
    """Ask as an async server does."""
    return async_to_sync(AsyncClient().post)


class TestAnAsyncView:
    def test_emits(self, order, post):
        response = post("/place/", {"items": 3}, content_type="application/json")

        assert response.json() == {"started": 1}
        assert Event.objects.get().payload == {"items": 3}
        assert ScheduledTask.objects.get().task_key == "delivery.pack"

    def test_that_is_refused_writes_nothing(self, order, post):
        with pytest.raises(InvalidInput):
            post("/place/", [], content_type="application/json")

        assert not Event.objects.exists()
        assert not TimelineRun.objects.exists()

    def test_has_every_verb(self, order, post):
        said = post("/handle/").json()

        assert said["foreseen"] == ["delivery.ship"]
        assert said["preview"] == ["delivery.pack", "delivery.ship"]
        assert "delivery.call for testapp.order" in said["explained"]
        assert said["left"]
        assert (
            LogEntry.objects.count() == 5
        )  # Moved, due, cancelled; its next revision: run again, and ended with the run.


@pytest.mark.django_db(transaction=True)
class TestAFunctionThatHoldsTheTransaction:
    def test_writes_all_of_it(self, post):
        assert post("/order-whole/", {"note": "right"}).status_code == 200

        assert Order.objects.get().note == "right"
        assert TimelineRun.objects.get().is_open

    def test_writes_nothing_when_it_fails(self, post):
        with pytest.raises(ValueError, match="wrong"):
            post("/order-whole/", {"note": "wrong"})

        assert not Order.objects.exists()
        assert not Event.objects.exists()
        assert not ScheduledTask.objects.exists()
