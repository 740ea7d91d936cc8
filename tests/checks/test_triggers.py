"""Checks of the triggers that guard the rows, and of the functions that statements call."""

import pytest
from django.db import connection

from tests.triggers import drop_trigger
from timeline.checks import check_triggers
from timeline.hooks import hooks
from timeline.store.triggers import KEPT, TRIGGERS


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
        assert "migrate --database default --skip-checks" in error.hint

    @pytest.mark.only_postgresql
    @pytest.mark.parametrize("name", [*KEPT, *(name for name, _text in hooks().functions)])
    def test_sees_a_missing_function(self, db, name):
        with connection.cursor() as cursor:
            cursor.execute(f"DROP FUNCTION timeline_{name}")

        [error] = check_triggers(None, databases=["default"])

        assert (error.id, name in error.msg) == ("timeline.E004", True)

    def test_does_not_fail_before_the_tables_are_there(self, bare_database):
        bare_database("wal")

        assert check_triggers(None, databases=["bare"]) == []
