"""The connection that is kept from one message to the next."""

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from tests.readonly import backend, demote
from timeline.tasks.connections import beside, renew

pytestmark = [pytest.mark.only_postgresql, pytest.mark.django_db(transaction=True)]


def close():
    """End the connection of the thread that calls this."""
    connection.close()


@pytest.fixture
def end():
    """End a process of the server's, as a restart does."""
    settings = connection.get_connection_params()
    params = {name: settings[name] for name in ("dbname", "user", "host", "port", "password") if settings.get(name)}

    def end_backend(pid):
        with psycopg.connect(**params, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    return end_backend


class TestAConnection:
    def test_that_answers_is_kept(self, monkeypatch):
        connection.close()
        monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", None)
        before = backend()

        renew("default")

        assert backend() == before

    def test_that_is_gone_is_replaced(self, end):
        before = backend()
        end(before)

        renew("default")

        assert backend() != before

    def test_that_is_gone_is_missed_without_it(self, end):
        end(backend())

        with pytest.raises(OperationalError):
            backend()
        connection.close()

    def test_that_cannot_write_is_replaced(self):
        before = backend()
        demote()

        renew("default")

        assert backend() != before

    def test_that_was_never_made_is_not_made(self):
        connection.close()

        renew("default")

        assert connection.connection is None


class TestTheThreadBeside:
    def test_stays_for_the_next_message(self):
        with beside("default") as first, beside("default") as second:
            assert first is second
            pids = {side_thread.submit(backend).result() for side_thread in (first, second)}

        assert len(pids) == 1
        assert backend() not in pids

    def test_has_its_connection_closed_where_the_sites_are_closed_after_each_request(self, monkeypatch):
        monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)
        with beside("default") as side_thread:
            side_thread.submit(close).result()
            side_thread.submit(backend).result()

        assert side_thread.submit(lambda: connection.connection).result() is None

    def test_has_a_connection_that_is_gone_replaced(self, end, monkeypatch):
        monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", None)
        with beside("default") as side_thread:
            side_thread.submit(close).result()
            before = side_thread.submit(backend).result()
        end(before)

        with beside("default") as side_thread:
            assert side_thread.submit(backend).result() != before
            side_thread.submit(close).result()

    def test_has_a_connection_that_cannot_write_replaced(self, monkeypatch):
        monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", None)
        with beside("default") as side_thread:
            before = side_thread.submit(backend).result()
            side_thread.submit(demote).result()

        with beside("default") as side_thread:
            assert side_thread.submit(backend).result() != before
            side_thread.submit(close).result()

    def test_is_not_there_inside_a_transaction(self):
        """It would not see what the transaction has written."""
        with transaction.atomic(), beside("default") as side_thread:
            assert side_thread is None
