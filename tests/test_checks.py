"""System checks: each sees its mistake, and is silent otherwise."""

import sqlite3

import pytest
from django.core import checks
from django.core.management import CommandError, call_command
from django.db import connection

from tests.triggers import drop_trigger
from timeline.checks import check_settings, check_sqlite, check_triggers
from timeline.models.triggers import TRIGGERS


def ids(found):
    return [message.id for message in found]


class TestCheckSettings:
    def test_is_silent_when_all_is_well(self):
        assert check_settings(None) == []

    @pytest.mark.parametrize("given", [{"LEESE": 1}, {"LEASE": 60}, {"AUTOSTART": "no"}, {"MAX_LOST": 0}], ids=str)
    def test_sees_a_wrong_setting(self, settings, given):
        settings.TIMELINE = given

        [error] = check_settings(None)

        assert error.id == "timeline.E001"
        assert next(iter(given)) in error.msg

    def test_sees_that_times_would_be_naive(self, settings):
        settings.USE_TZ = False

        assert ids(check_settings(None)) == ["timeline.E002"]


@pytest.mark.usefixtures("_on_sqlite")
class TestCheckSqlite:
    @pytest.fixture
    def _on_sqlite(self, monkeypatch):
        """Whatever the tests run on, the check is asked about SQLite."""
        monkeypatch.setattr(connection, "vendor", "sqlite")
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


class TestCheckTriggers:
    def test_is_silent_when_all_stand(self, db):
        assert check_triggers(None, databases=["default"]) == []

    @pytest.mark.parametrize("databases", [None, []])
    def test_asks_no_database_that_it_was_not_given(self, databases):
        assert check_triggers(None, databases=databases) == []

    @pytest.mark.parametrize("name", TRIGGERS)
    def test_sees_a_missing_trigger(self, db, name):
        drop_trigger(name)

        [error] = check_triggers(None, databases=["default"])

        assert error.id == "timeline.E004"
        assert name in error.msg
        assert "migrate --database default" in error.hint


class TestRegister:
    def test_has_manage_py_run_them(self, settings):
        settings.TIMELINE = {"LEESE": 1}

        assert "timeline.E001" in ids(checks.run_checks())

    def test_has_those_of_a_database_run_when_it_is_named(self, db):
        drop_trigger("guard_log")

        call_command("check")
        with pytest.raises(CommandError, match=r"timeline\.E004"):
            call_command("check", databases=["default"])
