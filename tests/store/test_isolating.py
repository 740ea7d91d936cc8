"""Whether a transaction sees what others committed a moment ago. Verbs and workers: tests/postgresql/test_isolating.py."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, connections, transaction
from django.db.backends.postgresql.psycopg_any import IsolationLevel

from tests.databases import VENDOR
from tests.testapp.models import Order
from timeline.exceptions import WrongIsolation
from timeline.store.transactions import (
    atomic,
    check_level,
    committed,
    has_to_ask,
    host_level,
    now_in_fresh_transaction,
    server_level,
)

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = timedelta(minutes=1)


@pytest.fixture
def host_asks_for():
    """Let our connection ask for transactions of a level: ``host_asks_for("serializable")``."""

    def ask(level):
        connection.ensure_connection()
        connection.connection.isolation_level = IsolationLevel[level.upper().replace(" ", "_")]

    yield ask
    connections.close_all()


def level_now():
    with connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        return cursor.fetchone()[0]


@pytest.mark.only_postgresql
class TestAtomic:
    def test_is_read_committed_where_it_begins_a_transaction_and_leaves_the_next_to_the_host(self, host_asks_for):
        host_asks_for("serializable")

        with atomic(using="default"):
            ours = level_now()
        with transaction.atomic():
            the_hosts = level_now()

        assert (ours, the_hosts) == ("read committed", "serializable")

    def test_leaves_the_next_to_the_host_also_when_it_is_undone(self, host_asks_for):
        host_asks_for("serializable")

        with pytest.raises(ZeroDivisionError), atomic(using="default"):
            raise ZeroDivisionError

        with transaction.atomic():
            assert level_now() == "serializable"

    def test_changes_nothing_of_a_transaction_of_the_hosts(self, host_asks_for):
        host_asks_for("repeatable read")

        with transaction.atomic(), atomic(using="default"):
            assert level_now() == "repeatable read"


class TestHasToAsk:
    def test_is_needless_outside_a_transaction(self):
        assert has_to_ask("default") is False

    def test_is_needed_in_one_whose_level_nobody_here_has_set(self):
        with transaction.atomic():
            assert has_to_ask("default") is (connection.vendor == "postgresql")

    @pytest.mark.only_postgresql
    def test_is_needless_where_the_driver_knows_that_it_sees_what_is_there(self, host_asks_for):
        host_asks_for("read committed")

        with transaction.atomic():
            assert has_to_ask("default") is False

    @pytest.mark.only_postgresql
    def test_is_needless_where_the_driver_knows_that_it_does_not(self, host_asks_for, django_assert_num_queries):
        host_asks_for("serializable")

        with transaction.atomic(), django_assert_num_queries(0), pytest.raises(WrongIsolation, match="SERIALIZABLE"):
            has_to_ask("default")


class TestNowInFreshTransaction:
    def test_tells_the_time_by_the_database(self):
        with transaction.atomic():
            told = now_in_fresh_transaction(using="default")

        assert abs(told - datetime.now(UTC)) < MINUTE
        assert told.tzinfo is UTC

    @pytest.mark.only_postgresql
    def test_refuses_a_transaction_that_set_its_level_itself(self):
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

            with pytest.raises(WrongIsolation, match="REPEATABLE READ"):
                now_in_fresh_transaction(using="default")


class TestLevels:
    @pytest.mark.only_postgresql
    @pytest.mark.parametrize(("level", "told"), [("SERIALIZABLE", "serializable"), ("READ_COMMITTED", "")])
    def test_of_the_hosts_settings_are_told_where_they_matter(self, monkeypatch, level, told):
        monkeypatch.setitem(connection.settings_dict["OPTIONS"], "isolation_level", IsolationLevel[level])

        assert host_level("default") == told

    def test_of_a_host_that_sets_none_are_empty(self):
        assert host_level("default") == ""

    @pytest.mark.only_postgresql
    def test_of_the_server_are_its_default(self):
        assert server_level("default") == "read committed"


class TestCheckLevel:
    @pytest.mark.parametrize("level", ["read committed", "read uncommitted"])
    def test_passes_what_sees_what_is_there(self, level):
        check_level(level, using="default")

    @pytest.mark.parametrize("level", ["repeatable read", "serializable"])
    def test_refuses_what_does_not(self, level):
        with pytest.raises(WrongIsolation, match=level.upper()):
            check_level(level, using="default")


class TestCommitted:
    def test_commits_what_is_written_within(self):
        with committed("default"):
            Order.objects.create()
            assert connection.in_atomic_block is (VENDOR == "sqlite")

        assert not connection.in_atomic_block
        assert Order.objects.exists()

    def test_is_refused_within_a_transaction(self):
        with transaction.atomic(), pytest.raises(RuntimeError, match="durable"), committed("default"):
            pass
