"""Requests after a failover: the connection that a process of the site keeps leads to a server that takes no writes."""

from __future__ import annotations

import pytest
from django.db import connection, connections
from django.test import Client

from tests.readonly import backend, demote
from timeline.models import ScheduledTask

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.only_postgresql,
    pytest.mark.urls("tests.hosts.views"),
    pytest.mark.usefixtures("clock", "delivery"),
]


@pytest.fixture
def client():
    """A browser, which sees an error as a page."""
    return Client(raise_request_exception=False)


class TestARequest:
    @pytest.mark.parametrize("atomic", [True, False], ids=["atomic requests", "others"])
    def test_that_fails_for_it_is_the_last_one(self, client, atomic, monkeypatch):
        monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", atomic)
        demote()

        answers = [client.get("/emit-and-fail/").status_code for _ in range(2)]

        assert answers == [500, 200]
        assert ScheduledTask.objects.get().task_key == "delivery.pack"

    def test_that_fails_for_another_reason_costs_no_connection(self, client):
        before = backend()

        assert client.get("/emit-and-fail/?fail").status_code == 500

        assert backend() == before
        assert connection.is_usable()
