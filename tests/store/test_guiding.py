"""What a statement is told holds for it alone."""

from contextlib import nullcontext

import pytest
from django.db import connection, transaction

from timeline.models import ScheduledTask
from timeline.store.transactions import IN_ORDER, execute_guided, guided

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
    def test_holds_for_the_statement_alone_in_a_transaction_of_the_caller(self):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_sort = off")
            cursor.execute("SET LOCAL lock_timeout = '7s'")
            before = settings_now(cursor)
            execute_guided(cursor, ASK, {"said": "so"}, settings=SETTINGS, using="default")

            assert cursor.fetchone() == ("5s", "off", "so")
            assert settings_now(cursor) == before == ("7s", "off", "on")

    @pytest.mark.usefixtures("_binding")
    def test_commits_it(self, make_task):
        make_task()
        named = "UPDATE timeline_scheduledtask SET worker = %(worker)s"
        with connection.cursor() as cursor:
            execute_guided(cursor, named, {"worker": "guided"}, settings=SETTINGS, using="default")

        connection.rollback()
        assert ScheduledTask.objects.get().worker == "guided"

    def test_is_one_trip_in_a_transaction_too(self, django_assert_num_queries):
        with transaction.atomic(), django_assert_num_queries(1), connection.cursor() as cursor:
            execute_guided(cursor, ASK, {"said": "so"}, settings=SETTINGS, using="default")

            assert cursor.fetchone() == ("5s", "off", "so")

    @pytest.mark.parametrize("settings", [SETTINGS, {}], ids=["told something", "told nothing"])
    def test_is_one_trip(self, settings, django_assert_num_queries):
        with django_assert_num_queries(1), connection.cursor() as cursor:
            execute_guided(cursor, ASK, {"said": "so"}, settings=settings, using="default")

            assert cursor.fetchone()[2] == "so"


class TestGuided:
    @pytest.mark.parametrize("is_among_others", [False, True], ids=["alone", "in a transaction of the caller"])
    def test_holds_for_the_queries_of_the_block_alone(self, is_among_others, make_task):
        made = make_task()
        with transaction.atomic() if is_among_others else nullcontext(), connection.cursor() as cursor:
            before = settings_now(cursor)
            with guided(IN_ORDER, using="default"):
                assert ScheduledTask.objects.get() == made

            assert settings_now(cursor) == before
