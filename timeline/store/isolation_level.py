"""
Does a transaction see what others have just committed? After it has locked an entity, it must see the runs that others began.
At READ COMMITTED, each statement does. At higher levels, a transaction sees the data from its beginning, however long it has
waited for a lock. On SQLite only one transaction writes at a time, and always sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.transaction import Atomic

from timeline.clocks import story_now
from timeline.dialects import dialect_of, is_by_psycopg3
from timeline.exceptions import WrongIsolation

FRESH: Final = frozenset({"read committed", "read uncommitted"})  # PostgreSQL treats both alike.
LEVEL: Final = "current_setting('transaction_isolation')"
_READ_COMMITTED: Final = 2  # The number in psycopg.
_IDLE: Final = 0


def atomic(*, using: str, savepoint: bool = True, durable: bool = False) -> Atomic:
    """
    As ``transaction.atomic``, but a transaction that begins here is READ COMMITTED, whatever level the host's settings have.
    With psycopg 3, it is a part of BEGIN and needs no statement. Functions called on commit find the host's level again.
    """
    return _ReadCommitted(using, savepoint, durable)


class _ReadCommitted(Atomic):
    def __enter__(self) -> None:
        begins = _begins(self.using or DEFAULT_DB_ALIAS)
        self._begun = begins.connection if begins is not None else None
        if self._begun is not None:
            self._before = self._begun.isolation_level
            self._begun.isolation_level = _READ_COMMITTED
        try:
            super().__enter__()
        except BaseException:
            self._give_back()
            raise
        if begins is not None:
            begins.on_commit(self._give_back)  # The first of all hooks.

    def __exit__(self, *raised: Any) -> None:
        try:
            super().__exit__(*raised)
        finally:
            self._give_back()

    def _give_back(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None and begun.pgconn.transaction_status == _IDLE:
            begun.isolation_level = self._before


@contextmanager
def committed(using: str) -> Iterator[None]:
    """Commit at the end of the block; one statement needs no BEGIN and COMMIT. ``RuntimeError``: within a transaction."""
    if dialect_of(using).has_set_statements and not connections[using].in_atomic_block:
        yield
    else:
        with atomic(using=using, durable=True):
            yield


def _begins(using: str) -> Any:
    """The connection, if a transaction begins on it now and its driver is psycopg 3; otherwise None."""
    connection: Any = connections[using]
    if connection.in_atomic_block or not is_by_psycopg3(connection):
        return None
    connection.ensure_connection()
    driver = connection.connection
    return connection if connection.autocommit and driver.pgconn.transaction_status == _IDLE else None


def has_to_ask(using: str) -> bool:
    """
    Whether only the database knows if the transaction sees what is committed now. ``WrongIsolation``: it surely does not.
    """
    connection: Any = connections[using]
    if not connection.in_atomic_block or dialect_of(using).has_one_writer:
        return False
    level = connection.connection.isolation_level if is_by_psycopg3(connection) else None
    if level is None:
        return True
    check_level(_name_of(connection, level), using=using)
    return False


def now_in_fresh_transaction(*, using: str) -> datetime:
    """
    Read story time by the database's clock. Raises ``WrongIsolation`` if the transaction does not see what is committed now.
    """
    if not has_to_ask(using):
        return story_now(using)
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("clock_and_isolation"))
        at, level = cursor.fetchone()
    check_level(level, using=using)
    return at.astimezone(UTC)  # type: ignore[no-any-return]


def host_level(using: str) -> str:
    """The level that a host's settings give to transactions, if these may not see what is committed now; otherwise empty."""
    connection: Any = connections[using]
    level = connection.settings_dict["OPTIONS"].get("isolation_level") if is_by_psycopg3(connection) else None
    name = "" if level is None else _name_of(connection, level)
    return "" if name in FRESH else name


def server_level(using: str) -> str:
    """The level of transactions that ask for none."""
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("default_isolation"))
        return str(cursor.fetchone()[0])


def _name_of(connection: Any, level: Any) -> str:
    return str(connection.Database.IsolationLevel(level).name).replace("_", " ").lower()


def check_level(level: str, *, using: str) -> None:
    """Raise ``WrongIsolation`` if a transaction of this level (PostgreSQL's name) does not see what is committed now."""
    if level not in FRESH:
        raise WrongIsolation(level, using)
