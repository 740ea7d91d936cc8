"""Listening to other processes, and going on where that is not possible."""

from __future__ import annotations

import logging
from contextlib import closing

import pytest
from django.db import connection

from tests.poolers import Pooler
from tests.processes import wait_for
from tests.readonly import DEMOTE
from timeline.signals import CHANNEL
from timeline.worker import listener
from timeline.worker.listener import Alarm, Listener, has_heard, own_connection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _try_again_soon(monkeypatch):
    monkeypatch.setattr(listener, "FIRST_PAUSE", 0.2)


@pytest.fixture
def alarm():
    return Alarm()


@pytest.fixture
def notify():
    """Announce something from another connection."""

    def send():
        with closing(own_connection("default")) as other, other.cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")

    return send


def listeners():
    """Process ids of the server's for those who listen in this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = %s", [f"LISTEN {CHANNEL}"]
        )
        return [pid for [pid] in cursor.fetchall()]


def hang_up(pids):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s) AS pid", [pids])


class TestListener:
    def test_rings_when_others_announce_something(self, alarm, notify):
        with Listener("default", alarm):
            alarm.sleep(60)

            notify()

            assert alarm.sleep(60)

    def test_rings_once_before_for_what_came_while_nobody_listened(self, alarm):
        with Listener("default", alarm):
            assert alarm.sleep(60)

    def test_listens_on_another_connection_when_the_server_takes_no_writes(self, alarm, notify, monkeypatch):
        """Nobody announces anything there: after a failover, others write to the new primary."""
        monkeypatch.setattr(listener, "LOOK_EVERY", 0.1)
        looked = []

        def once_read_only(driver):
            if not looked:
                with driver.cursor() as cursor:
                    cursor.execute(DEMOTE)
            looked.append(driver.info.backend_pid)
            return has_heard(driver)

        monkeypatch.setattr(listener, "has_heard", once_read_only)
        with Listener("default", alarm):
            wait_for(lambda: len(set(looked)) > 1, "the listening again")
            while alarm.sleep(1):
                pass

            notify()

            assert alarm.sleep(60)

    def test_leaves_no_connection_open(self, alarm):
        with Listener("default", alarm):
            wait_for(listeners, "the listening")

        wait_for(lambda: not listeners(), "the end of the connection")

    def test_listens_again_when_the_connection_broke(self, alarm, notify, caplog):
        caplog.set_level(logging.INFO, "timeline")
        with Listener("default", alarm):
            wait_for(listeners, "the listening")
            lost = listeners()
            hang_up(lost)
            wait_for(lambda: set(listeners()) - set(lost), "the listening again")
            while alarm.sleep(1):
                pass

            notify()

            assert alarm.sleep(60)
        first, second = [record.getMessage() for record in caplog.records]
        assert first.startswith("What is due waits for the next poll, as nothing wakes this process: ")
        assert second == "What is due wakes this process again."

    def test_says_once_that_it_cannot_listen(self, alarm, monkeypatch, caplog):
        caplog.set_level(logging.INFO, "timeline")
        tries = []
        monkeypatch.setitem(connection.settings_dict, "PORT", "1")
        monkeypatch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        monkeypatch.setattr(listener, "own_connection", lambda using: tries.append(using) or own_connection(using))

        with Listener("default", alarm):
            wait_for(lambda: len(tries) > 2, "the third try")

        assert len(caplog.records) == 1
        assert not alarm.sleep(0)

    def test_does_not_listen_behind_a_pool(self, alarm, monkeypatch, caplog):
        """A pool would let others have the connection we listen on."""
        caplog.set_level(logging.INFO, "timeline")
        connection.ensure_connection()  # The test's own does not go through the pool.
        with Pooler(connection.settings_dict) as pooler:
            monkeypatch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
            monkeypatch.setitem(connection.settings_dict, "PORT", str(pooler.port))
            options = {"sslmode": "disable", "gssencmode": "disable"}
            monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)

            with Listener("default", alarm):
                wait_for(lambda: caplog.records and pooler.connections > 1, "the second try")
                assert listeners() == []

        assert "a connection pool stands between this process and PostgreSQL" in caplog.text
        assert len(caplog.records) == 1


class TestOwnConnection:
    def test_is_not_out_of_djangos_pool(self, monkeypatch):
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"pool": True})

        assert "pool" not in own_connection("default").settings_dict["OPTIONS"]
        assert connection.settings_dict["OPTIONS"] == {"pool": True}

    def test_keeps_what_the_host_says(self, monkeypatch):
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"connect_timeout": 60})

        options = own_connection("default").settings_dict["OPTIONS"]

        assert options == {**listener.OPTIONS, "connect_timeout": 60}
