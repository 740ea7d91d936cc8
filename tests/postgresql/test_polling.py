"""What a poll asks of the database ends, even if the database hangs."""

import pytest
from django.db import connection

from timeline.models import ScheduledTask
from timeline.operations._polling import execute_bounded, polling

ASK = "SELECT current_setting('lock_timeout'), current_setting('statement_timeout'), %(said)s"
BOUNDED, UNBOUNDED = ("5s", "30s"), ("0", "0")


def settings_now(cursor):
    cursor.execute("SELECT current_setting('lock_timeout'), current_setting('statement_timeout')")
    return cursor.fetchone()


@pytest.mark.django_db(transaction=True)
class TestExecuteBounded:
    @pytest.fixture(params=[False, True], ids=["bound by the client", "bound by the server"])
    def _binding(self, request, monkeypatch):
        monkeypatch.setattr(connection.features, "uses_server_side_binding", request.param)

    @pytest.mark.usefixtures("_binding")
    def test_bounds_the_statement_and_nothing_after_it(self):
        with connection.cursor() as cursor:
            execute_bounded(cursor, ASK, {"said": "so"}, using="default")

            assert cursor.fetchone() == (*BOUNDED, "so")
            assert settings_now(cursor) == UNBOUNDED

    @pytest.mark.usefixtures("_binding")
    def test_commits_it(self, make_task):
        make_task()
        named = "UPDATE timeline_scheduledtask SET worker = %(worker)s"
        with connection.cursor() as cursor:
            execute_bounded(cursor, named, {"worker": "bounded"}, using="default")

        connection.rollback()
        assert ScheduledTask.objects.get().worker == "bounded"

    def test_is_one_trip(self, django_assert_num_queries):
        with django_assert_num_queries(1), connection.cursor() as cursor:
            execute_bounded(cursor, ASK, {"said": "so"}, using="default")


@pytest.mark.django_db(transaction=True)
class TestPolling:
    def test_bounds_all_its_statements_and_none_after_it(self):
        with connection.cursor() as cursor:
            with polling("default"):
                assert settings_now(cursor) == BOUNDED
            assert settings_now(cursor) == UNBOUNDED
