"""Checks of open rows."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.checks import ids
from timeline.checks import check_rows
from timeline.lifecycle import FINAL, OPEN
from timeline.models import ScheduledTask
from timeline.shortcuts import cancel, relabel


def check():
    return check_rows(None, databases=["default"])


class TestCheckRows:
    def test_is_silent_when_each_row_has_its_task_and_its_model(self, make_task, user):
        make_task(entity_label="accounts.user", entity_id=str(user.pk))
        make_task()

        assert check() == []

    @pytest.mark.parametrize("databases", [None, []])
    def test_asks_no_database_that_it_was_not_given(self, make_task, databases):
        make_task(task_key="trial.gone")

        assert check_rows(None, databases=databases) == []

    def test_asks_once_of_any_number_of_rows(self, make_task):
        for number in range(30):
            make_task(task_key=f"trial.remind{number % 2 or ''}", entity_label="accounts.user", entity_id=str(number))

        with CaptureQueriesContext(connection) as queries:
            check()

        asked = [query["sql"] for query in queries if "GROUP BY" in query["sql"]]
        assert len(asked) == 1

    def test_does_not_fail_before_the_tables_are_there(self, bare_database):
        bare_database("wal")

        assert check_rows(None, databases=["bare"]) == []


class TestCheckRowsOfUnknownKeys:
    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_sees_them(self, make_task, state):
        make_task(task_key="trial.gone", state=state)
        make_task(task_key="old.task")
        make_task(task_key="trial.gone")

        [warning] = check()

        assert warning.id == "timeline.W005"
        assert "trial.gone (2), old.task (1)." in warning.msg

    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_lets_be_what_has_ended(self, make_task, state):
        make_task(task_key="trial.gone", state=state)

        assert check() == []

    def test_names_five_of_them(self, make_task):
        for number in range(7):
            make_task(task_key=f"old.task{number}")

        [warning] = check()

        assert warning.msg.endswith("old.task3 (1), old.task4 (1) and 2 more.")

    def test_says_how_to_cancel_them(self, make_task):
        make_task(task_key="trial.gone")
        words = check()[0].hint.partition("cancel its rows: ")[2].rstrip(".")

        eval(words, {"cancel": cancel, "ScheduledTask": ScheduledTask})  # noqa: S307

        assert check() == []


class TestCheckRowsOfUnknownModels:
    def test_sees_them(self, make_task):
        for key in "123":
            make_task(entity_label="shop.client", entity_id=key)
        make_task(entity_label="accounts.gone", entity_id="1")

        [warning] = check()

        assert warning.id == "timeline.W006"
        assert "shop.client (3), accounts.gone (1)." in warning.msg
        assert "manage.py timeline_relabel accounts.gone" in warning.hint

    def test_lets_be_what_has_ended(self, make_task):
        make_task(entity_label="shop.client", entity_id="1", state="completed")

        assert check() == []

    def test_is_silent_once_they_have_the_new_label(self, make_task):
        make_task(entity_label="shop.client", entity_id="1")
        assert ids(check()) == ["timeline.W006"]

        relabel("shop.client", "accounts.user")

        assert check() == []
