"""Checks of databases on SQLite."""

import sqlite3

import pytest
from django.db import connection, connections

from tests.checks import ids
from timeline.checks import check_journal, check_sqlite


@pytest.mark.usefixtures("_on_sqlite")
class TestCheckSqlite:
    @pytest.fixture
    def _on_sqlite(self, monkeypatch, settings):
        """Whatever the tests run on, the check is asked about SQLite."""
        settings.DEBUG = True
        monkeypatch.setattr(connection, "vendor", "sqlite")
        monkeypatch.setitem(connection.settings_dict, "NAME", "site.sqlite3")
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"transaction_mode": "IMMEDIATE"})

    def test_is_silent_when_all_is_well(self):
        assert check_sqlite(None) == []

    @pytest.mark.parametrize("mode", [None, "DEFERRED", "deferred"])
    def test_sees_transactions_that_begin_by_reading(self, monkeypatch, mode):
        options = {} if mode is None else {"transaction_mode": mode}
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)

        assert ids(check_sqlite(None)) == ["timeline.W001"]

    @pytest.mark.parametrize("mode", ["IMMEDIATE", "immediate", "EXCLUSIVE"])
    def test_takes_transactions_that_begin_by_writing(self, monkeypatch, mode):
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"transaction_mode": mode})

        assert check_sqlite(None) == []

    @pytest.mark.parametrize(("version", "found"), [((3, 34, 1), ["timeline.E003"]), ((3, 35, 0), []), ((4, 0, 0), [])])
    def test_sees_an_old_library(self, monkeypatch, version, found):
        monkeypatch.setattr(sqlite3, "sqlite_version_info", version)

        assert ids(check_sqlite(None)) == found

    def test_sees_that_a_site_in_use_is_on_it(self, settings):
        settings.DEBUG = False

        warning = check_sqlite(None)[0]

        assert warning.id == "timeline.W002"
        assert "PostgreSQL" in warning.hint
        assert "SILENCED_SYSTEM_CHECKS" in warning.hint

    @pytest.mark.parametrize("name", [":memory:", "file:memorydb_default?mode=memory&cache=shared"])
    def test_takes_a_database_in_memory_for_that_of_tests(self, settings, monkeypatch, name):
        settings.DEBUG = False
        for alias in connections:
            monkeypatch.setitem(connections[alias].settings_dict, "NAME", name)

        assert check_sqlite(None) == []


class TestCheckJournal:
    def test_is_silent_with_a_write_ahead_log(self, bare_database):
        bare_database("wal")

        assert check_journal(None, databases=["bare"]) == []

    @pytest.mark.parametrize("mode", ["delete", "truncate"])
    def test_sees_another_journal(self, bare_database, mode):
        bare_database(mode)

        [warning] = check_journal(None, databases=["bare"])

        assert warning.id == "timeline.W003"
        assert mode in warning.msg
        assert "journal_mode=WAL" in warning.hint

    def test_takes_a_database_in_memory_as_it_is(self, bare_database):
        bare_database("memory", ":memory:")

        assert check_journal(None, databases=["bare"]) == []

    @pytest.mark.parametrize("databases", [None, []])
    def test_asks_no_database_that_it_was_not_given(self, databases):
        assert check_journal(None, databases=databases) == []
