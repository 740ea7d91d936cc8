"""One cursor of a connection, with which the server puts the values in."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from timeline.features.steps.store import bound_cursor

pytestmark = pytest.mark.django_db

ASK = "SELECT CAST(%(number)s AS integer) + 1"


class TestBoundCursor:
    def test_asks_as_any_other(self):
        cursor = bound_cursor(connection)

        cursor.execute(ASK, {"number": 1, "unused": None})

        assert cursor.fetchall() == [(2,)]

    def test_is_seen_by_who_looks_at_statements(self):
        seen = []

        def look(execute, sql, *rest):
            seen.append(sql)
            return execute(sql, *rest)

        with connection.execute_wrapper(look):
            bound_cursor(connection).execute(ASK, {"number": 1})

        assert seen == [ASK]

    def test_is_logged_with_its_text(self):
        with CaptureQueriesContext(connection) as asked:
            bound_cursor(connection).execute(ASK, {"number": 1})

        assert ["CAST" in query["sql"] for query in asked] == [True]

    @pytest.mark.only_postgresql
    def test_has_the_server_put_the_values_in(self):
        cursor = bound_cursor(connection)

        cursor.execute(ASK, {"number": 1})

        assert b"$1" in cursor._query.query

    @pytest.mark.only_postgresql
    def test_is_kept(self):
        assert bound_cursor(connection).cursor is bound_cursor(connection).cursor

    @pytest.mark.only_postgresql
    def test_is_djangos_where_the_host_has_cursors_of_its_own(self, monkeypatch):
        class Own(connection.Database.ClientCursor):
            """Counts, or traces."""

        monkeypatch.setattr(connection.connection, "cursor_factory", Own)

        assert type(bound_cursor(connection).cursor) is Own


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_postgresql
class TestANewConnection:
    def test_has_a_cursor_of_its_own(self):
        bound_cursor(connection)
        connection.close()

        cursor = bound_cursor(connection)
        cursor.execute(ASK, {"number": 1})

        assert cursor.connection is connection.connection
