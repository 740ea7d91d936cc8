"""
Transactions: whether they see what others have just committed, and settings of the planner that hold for one statement.

After a transaction has locked an entity, it must see the runs that others began. At READ COMMITTED, each statement does. At
higher levels, a transaction sees the data from its beginning, however long it has waited for a lock. On SQLite only one
transaction writes at a time, and always sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
def in_transaction(using: str) -> Iterator[None]:
    """
    Use the caller's transaction, or a new one. For work that raises before it writes: it needs no savepoint (two statements).
    """
    if connections[using].in_atomic_block:
        yield
    else:
        with atomic(using=using):
            yield


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


# For statements that read the first rows of an index. If the statistics are from a time when nothing was ready, PostgreSQL
# takes all indexes for equally good: to find the first hundred rows, it might read a hundred thousand ready rows by an index
# with another order, and sort them. With sorting off, a plan seems to cost more, and this must not start the JIT compiler.
IN_ORDER: Final = {"enable_sort": "off", "enable_incremental_sort": "off", "jit": "off"}

# For statements that read few rows by many expressions: compiling takes a hundred times as long as executing.
AS_IT_IS: Final = {"jit": "off"}

_WAS: Final = "timeline_was"  # Prefix of settings of our own: they keep the values of a caller's transaction.


def execute_guided(
    cursor: Any, sql: str, parameters: Mapping[str, Any] | Sequence[Any], *, settings: Mapping[str, str], using: str
) -> None:
    """
    Execute one statement with settings of its own, which are put back in a caller's transaction; SQLite has none. If psycopg 3
    binds parameters on the client, as in Django by default, settings, statement and commit are one trip; otherwise four.
    """
    connection: Any = connections[using]
    if not settings or not dialect_of(using).has_settings:
        cursor.execute(sql, parameters)
    elif is_by_psycopg3(connection) and not connection.features.uses_server_side_binding:
        is_among_others = connection.in_atomic_block
        cursor.execute(_around(sql, settings, is_among_others=is_among_others), parameters)
        for _before in range(1 + is_among_others):
            cursor.nextset()
    else:
        with _set(settings, connection, using=using):
            cursor.execute(sql, parameters)


def as_select(settings: Mapping[str, str]) -> str:
    """The statement that makes settings until the end of the transaction. Names and values are our own texts only."""
    return "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())


def _around(sql: str, settings: Mapping[str, str], *, is_among_others: bool) -> str:
    """The statement with its settings before it and, inside a transaction, a statement after it that puts them back."""
    if not is_among_others:
        return f"{as_select(settings)};\n{sql}"
    return f"{_kept(settings)};\n{as_select(settings)};\n{sql}\n; {_back(settings)}"


def _kept(settings: Mapping[str, str]) -> str:
    """The statement that keeps the present settings until the end of the transaction."""
    kept = (f"set_config('{_WAS}.{name}', current_setting('{name}'), true)" for name in settings)
    return f"SELECT {', '.join(kept)}"


def _back(settings: Mapping[str, str]) -> str:
    """The statement that puts the kept settings back."""
    back = (f"set_config('{name}', current_setting('{_WAS}.{name}'), true)" for name in settings)
    return f"SELECT {', '.join(back)}"


@contextmanager
def _set(settings: Mapping[str, str], connection: Any, *, using: str) -> Iterator[None]:
    """Execute a block with settings, in a transaction. In the caller's transaction, the settings are put back afterwards."""
    is_among_others = connection.in_atomic_block
    with atomic(using=using):
        with connection.cursor() as cursor:
            if is_among_others:
                cursor.execute(_kept(settings))
            cursor.execute(as_select(settings))
        yield
        if is_among_others:
            with connection.cursor() as cursor:
                cursor.execute(_back(settings))


@contextmanager
def guided(settings: Mapping[str, str], *, using: str) -> Iterator[None]:
    """Execute the queries of a block with these settings; if possible, each together with them in one trip."""
    connection: Any = connections[using]
    if not dialect_of(using).has_settings:
        yield
    elif is_by_psycopg3(connection) and not connection.features.uses_server_side_binding:

        def set_first(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
            is_among_others = connection.in_atomic_block
            found = execute(_around(sql, settings, is_among_others=is_among_others), params, many, context)
            for _before in range(1 + is_among_others):
                context["cursor"].nextset()
            return found

        connection.execute_wrappers.insert(0, set_first)  # First: so other wrappers see the statement as it is sent.
        try:
            yield
        finally:
            connection.execute_wrappers.remove(set_first)
    else:
        with _set(settings, connection, using=using):
            yield
