"""Functions and triggers are installed beside another process that installs them, and where the server prepares statements."""

import threading

import pytest
from django.db import DatabaseError, connection, connections, transaction
from psycopg import Cursor

from tests.postgresql.races import wait_for_a_waiter
from timeline.store.triggers import KEPT, install_triggers, missing_triggers


class TestInstallTriggers:
    @pytest.mark.django_db(transaction=True)
    def test_waits_until_the_other_has_installed(self):
        """Several containers of a site start at the same time, and each migrates."""
        refused = []

        def install():
            try:
                install_triggers("default")
            except DatabaseError as error:
                refused.append(error)
            finally:
                connections.close_all()

        beside = threading.Thread(target=install)
        with transaction.atomic():
            install_triggers("default")
            beside.start()
            wait_for_a_waiter(beside)
            waited = beside.is_alive()
        beside.join(60)

        assert (waited, refused) == (True, [])

    def test_takes_the_place_of_a_function_where_each_statement_is_prepared(self, db, monkeypatch):
        """PostgreSQL prepares one statement at a time."""
        kept = next(iter(KEPT.values()))
        with connection.cursor() as cursor:
            cursor.execute(kept.drop)
            arguments = ", ".join(kept.arguments.values())
            cursor.execute(f"CREATE FUNCTION {kept.function}({arguments}) RETURNS text LANGUAGE sql AS 'SELECT NULL'")
        monkeypatch.setattr(connection.connection, "cursor_factory", Cursor)
        monkeypatch.setattr(connection.connection, "prepare_threshold", 0)

        install_triggers("default")

        assert missing_triggers("default") == []
