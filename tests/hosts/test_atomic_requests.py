"""ATOMIC_REQUESTS: each request is a transaction, and what it emitted stands or falls with it."""

from __future__ import annotations

import pytest
from django.db import connections
from django.test import Client

from tests.testapp.models import Order
from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.hosts.views"),
    pytest.mark.usefixtures("clock", "delivery"),
]


@pytest.fixture
def client():
    """A browser, which sees an error as a page."""
    return Client(raise_request_exception=False)


@pytest.fixture
def _atomic_requests(monkeypatch):
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)


@pytest.mark.usefixtures("_atomic_requests")
class TestARequestThatIsATransaction:
    def test_leaves_nothing_when_it_fails_after_it_emitted(self, client):
        assert client.get("/emit-and-fail/?fail").status_code == 500

        for model in (Order, Event, TimelineRun, ScheduledTask, LogEntry):
            assert not model.objects.exists()

    def test_leaves_all_of_it_when_it_does_not(self, client):
        assert client.get("/emit-and-fail/").status_code == 200

        assert TimelineRun.objects.get().started_by == Event.objects.get()
        assert ScheduledTask.objects.get().task_key == "delivery.pack"


class TestARequestThatIsNone:
    def test_leaves_what_it_emitted_before_it_failed(self, client):
        assert client.get("/emit-and-fail/?fail").status_code == 500

        assert ScheduledTask.objects.get().task_key == "delivery.pack"
