"""The connection that is kept from one message to the next."""

import psycopg
import pytest
from django.db import OperationalError, connection

from timeline.tasks.connecting import renew

pytestmark = [pytest.mark.only_postgresql, pytest.mark.django_db(transaction=True)]


def backend():
    """Which of the server's processes serves us."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


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

    def test_that_was_never_made_is_not_made(self):
        connection.close()

        renew("default")

        assert connection.connection is None
