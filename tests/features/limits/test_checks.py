"""Checks of limits."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.checks import conftest as checks
from timeline import Limit, Timeline, task
from timeline.features.limits.checks import check_limits
from timeline.lifecycle import State
from timeline.testing import only_timelines

bare_database = checks.bare_database  # Fixtures.

pytestmark = pytest.mark.django_db


class Calls(Timeline):
    entity = "testapp.Order"

    @task(limit=Limit(1, "bank"))
    def limited(self, order): ...

    @task()
    def unlimited(self, order): ...


@pytest.fixture(autouse=True)
def known():
    with only_timelines(Calls):
        yield


def check():
    return check_limits(None, databases=["default"])


class TestCheckLimits:
    def test_sees_who_waits_for_a_place_that_nobody_gives(self, make_task):
        for _number in range(3):
            make_task(task_key="calls.unlimited", state=State.AVAILABLE, limit_key="bank", held_until="attempt")

        [warning] = check()

        assert warning.id == "timeline.W012"
        assert "calls.unlimited (3)." in warning.msg

    def test_is_silent_of_what_is_given_one_and_of_what_needs_none(self, make_task):
        make_task(task_key="calls.limited", state=State.AVAILABLE, limit_key="bank", held_until="attempt")
        make_task(task_key="calls.unlimited", state=State.AVAILABLE)
        make_task(task_key="calls.unlimited", state=State.COMPLETED, limit_key="bank", held_until="attempt")
        make_task(task_key="calls.gone", state=State.AVAILABLE, limit_key="bank", held_until="attempt")

        assert check() == []

    @pytest.mark.parametrize("databases", [None, []])
    def test_asks_no_database_that_it_was_not_given(self, databases, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert check_limits(None, databases=databases) == []

    def test_does_not_fail_before_the_tables_are_there(self, bare_database):
        bare_database("wal")

        assert check_limits(None, databases=["bare"]) == []

    def test_asks_nothing_of_columns_that_are_not_there_yet(self, make_task, monkeypatch):
        """``migrate`` asks the checks before it makes them."""
        make_task(task_key="calls.unlimited", state=State.AVAILABLE, limit_key="bank", held_until="attempt")
        real = connection.introspection.get_table_description
        monkeypatch.setattr(
            connection.introspection,
            "get_table_description",
            lambda *given: [column for column in real(*given) if column.name != "limit_key"],
        )

        assert check() == []
