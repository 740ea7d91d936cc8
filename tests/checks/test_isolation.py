"""The checks of isolation levels."""

import pytest
from django.db import connection

from tests.checks import ids
from timeline.checks import check_isolation, check_server_isolation


class TestCheckIsolation:
    def test_is_silent_when_all_is_well(self):
        assert check_isolation(None) == []

    @pytest.mark.only_postgresql
    @pytest.mark.parametrize(("level", "found"), [(1, []), (2, []), (3, ["timeline.W010"]), (4, ["timeline.W010"])])
    def test_goes_by_the_options_of_the_database(self, monkeypatch, level, found):
        monkeypatch.setitem(connection.settings_dict["OPTIONS"], "isolation_level", level)

        assert ids(check_isolation(None)) == found

    @pytest.mark.only_postgresql
    def test_says_what_to_do(self, monkeypatch):
        monkeypatch.setitem(connection.settings_dict["OPTIONS"], "isolation_level", 4)

        [warning] = check_isolation(None)

        assert "SERIALIZABLE" in warning.msg
        assert "READ COMMITTED" in warning.hint


class TestCheckServerIsolation:
    def test_is_silent_when_all_is_well(self, db):
        assert check_server_isolation(None, databases=["default"]) == []

    def test_is_silent_where_no_database_is_named(self):
        assert check_server_isolation(None) == []

    @pytest.mark.only_postgresql
    @pytest.mark.parametrize("level", ["repeatable read", "serializable"])
    def test_asks_the_server(self, db, level):
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL default_transaction_isolation = '{level}'")

        [warning] = check_server_isolation(None, databases=["default"])

        assert warning.id == "timeline.W010"
        assert level.upper() in warning.msg
