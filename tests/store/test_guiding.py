"""What a statement is told holds for it alone."""

import pytest
from django.db import connection

from timeline.models import ScheduledTask
from timeline.store.guiding import IN_ORDER, execute_guided

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]

ASK = "SELECT current_setting('lock_timeout'), current_setting('enable_sort'), %(said)s"
SETTINGS = {"lock_timeout": "5s", **IN_ORDER}


def settings_now(cursor):
    cursor.execute("SELECT current_setting('lock_timeout'), current_setting('enable_sort'), current_setting('jit')")
    return cursor.fetchone()


class TestExecuteGuided:
    @pytest.fixture(params=[False, True], ids=["bound by the client", "bound by the server"])
    def _binding(self, request, monkeypatch):
        monkeypatch.setattr(connection.features, "uses_server_side_binding", request.param)

    @pytest.mark.usefixtures("_binding")
    def test_holds_for_the_statement_and_nothing_after_it(self):
        with connection.cursor() as cursor:
            before = settings_now(cursor)
            execute_guided(cursor, ASK, {"said": "so"}, settings=SETTINGS, using="default")

            assert cursor.fetchone() == ("5s", "off", "so")
            assert settings_now(cursor) == before

    @pytest.mark.usefixtures("_binding")
    def test_commits_it(self, make_task):
        make_task()
        named = "UPDATE timeline_scheduledtask SET worker = %(worker)s"
        with connection.cursor() as cursor:
            execute_guided(cursor, named, {"worker": "guided"}, settings=SETTINGS, using="default")

        connection.rollback()
        assert ScheduledTask.objects.get().worker == "guided"

    @pytest.mark.parametrize("settings", [SETTINGS, {}], ids=["told something", "told nothing"])
    def test_is_one_trip(self, settings, django_assert_num_queries):
        with django_assert_num_queries(1), connection.cursor() as cursor:
            execute_guided(cursor, ASK, {"said": "so"}, settings=settings, using="default")

            assert cursor.fetchone()[2] == "so"
