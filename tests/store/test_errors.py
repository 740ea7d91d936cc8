"""What the database raises, sorted."""

from __future__ import annotations

import time
from uuid import UUID

import pytest
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    transaction,
)

from tests.readonly import backend, demote
from timeline.exceptions import LeaseLost
from timeline.store.database_errors import (
    catching,
    drop_if_lost,
    is_of_a_lock,
    is_of_the_connection,
    is_passing,
    may_be_written_later,
)


class OfTheDriver(Exception):
    """As drivers raise it: with SQLite's name of the error, or with an SQLSTATE."""

    def __init__(self, *, sqlite="", sqlstate=""):
        super().__init__("the database says no")
        if sqlite:
            self.sqlite_errorname = sqlite
        if sqlstate:
            self.sqlstate = sqlstate


def raised(kind=OperationalError, **code):
    """An error as Django raises it for one of the driver's."""
    error = kind("the database says no")
    error.__cause__ = OfTheDriver(**code)
    return error


LOCKED = ["SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_LOCKED", "SQLITE_LOCKED_SHAREDCACHE"]


class TestIsPassing:
    @pytest.mark.parametrize("name", LOCKED)
    def test_is_a_lock_of_sqlite(self, name):
        assert is_passing(raised(sqlite=name))

    @pytest.mark.parametrize("code", ["40001", "40P01", "55P03", "08006", "57P01", "25006"])
    def test_is_a_conflict_or_a_connection_lost_on_postgresql(self, code):
        assert is_passing(raised(sqlstate=code))

    @pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
    def test_is_a_connection_lost_where_nobody_says_why(self, kind):
        assert is_passing(raised(kind))

    @pytest.mark.parametrize(
        "error",
        [
            raised(sqlite="SQLITE_FULL"),
            raised(sqlstate="57014"),
            raised(sqlstate="42P01"),
            raised(IntegrityError, sqlstate="23505"),
            raised(DatabaseError),
            OperationalError("raised by the host itself"),
            ConnectionError("of a mail server"),
        ],
        ids=repr,
    )
    def test_is_nothing_else(self, error):
        assert not is_passing(error)


class TestIsOfALock:
    @pytest.mark.parametrize(("code", "told"), [("40P01", True), ("55P03", True), ("40001", False), ("08006", False)])
    def test_is_a_deadlock_or_a_timeout(self, code, told):
        assert is_of_a_lock(raised(sqlstate=code)) is told

    def test_is_nothing_that_is_not_the_databases(self):
        assert not is_of_a_lock(raised(ValueError, sqlstate="40P01"))


class TestIsOfTheConnection:
    @pytest.mark.parametrize(
        "error",
        [
            raised(),
            raised(InterfaceError),
            raised(sqlstate="57P01"),
            raised(InternalError, sqlstate="25006"),
            raised(InternalError, sqlstate="25P03"),
            raised(InternalError, sqlstate="25P04"),
        ],
    )
    def test_is_what_another_connection_may_not_say(self, error):
        assert is_of_the_connection(error)

    @pytest.mark.parametrize(
        "error",
        [raised(InternalError, sqlstate="25P02"), raised(IntegrityError, sqlstate="23505"), ValueError("no")],
        ids=repr,
    )
    def test_is_nothing_that_any_connection_says(self, error):
        assert not is_of_the_connection(error)


class TestMayBeWrittenLater:
    @pytest.mark.parametrize("code", ["40001", "57014", "25006", "53100", "08006"])
    def test_is_what_says_nothing_against_the_data(self, code):
        assert may_be_written_later(raised(sqlstate=code))

    def test_is_a_lock_of_sqlite(self):
        assert may_be_written_later(raised(sqlite="SQLITE_BUSY"))

    @pytest.mark.parametrize("code", ["21000", "22001", "23514", "27000", "44000", "54000", "P0001"])
    def test_is_no_refusal_of_the_data(self, code):
        assert not may_be_written_later(raised(DatabaseError, sqlstate=code))

    @pytest.mark.parametrize("kind", [DataError, IntegrityError])
    def test_is_no_refusal_of_the_data_without_a_code(self, kind):
        assert not may_be_written_later(raised(kind))

    @pytest.mark.parametrize("error", [OperationalError("raised by the host itself"), ValueError("no")], ids=repr)
    def test_is_nothing_that_is_not_the_databases(self, error):
        assert not may_be_written_later(error)


class TestCatching:
    def test_keeps_what_is_raised(self):
        caught, error = [], ValueError("boom")

        with catching(caught):
            raise error

        assert caught == [error]

    @pytest.mark.parametrize("error", [LeaseLost(UUID(int=7), 1), KeyboardInterrupt()], ids=repr)
    def test_lets_through_what_is_no_outcome(self, error):
        caught = []

        with pytest.raises(type(error)), catching(caught):
            raise error

        assert caught == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_postgresql  # The connection is one that can be lost.
class TestDropIfLost:
    @pytest.fixture
    def _lost(self):
        """End our own connection, unseen, as a network does."""
        connection.ensure_connection()
        connection.connection.close()

    @pytest.mark.usefixtures("_lost")
    def test_lets_go_of_a_connection_that_is_gone(self):
        drop_if_lost(raised(), "default")

        assert connection.connection is None

    @pytest.mark.usefixtures("_lost")
    def test_does_not_look_where_the_error_is_another(self):
        drop_if_lost(ValueError("boom"), "default")

        assert connection.connection is not None
        connection.close()

    def test_lets_go_of_a_connection_that_cannot_write(self):
        demote()

        drop_if_lost(raised(InternalError, sqlstate="25006"), "default")

        assert connection.connection is None

    def test_lets_go_of_a_connection_that_was_ended_for_being_idle_in_a_transaction(self):
        """As PostgreSQL itself ends it: no ``OperationalError``."""

        def act():
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL idle_in_transaction_session_timeout = '50ms'")
                time.sleep(0.5)
                backend()

        with pytest.raises((DatabaseError, InterfaceError)) as ended:
            act()
        drop_if_lost(ended.value, "default")

        assert backend()

    def test_keeps_one_that_is_there(self):
        connection.ensure_connection()

        drop_if_lost(raised(sqlstate="40001"), "default")

        assert connection.is_usable()

    def test_leaves_a_transaction_to_whoever_began_it(self):
        def act():
            with transaction.atomic():
                connection.connection.close()
                drop_if_lost(raised(), "default")
                closed.append(connection.closed_in_transaction)

        closed = []

        with pytest.raises((DatabaseError, InterfaceError)):
            act()

        assert closed == [False]
        connection.close()
