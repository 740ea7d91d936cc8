"""Sort the errors that the database raises: those that pass, those that refuse data, those that have ended the connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError, connections

from timeline.dialects import dialect_of, sqlstate_of
from timeline.exceptions import LeaseLost

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

_OF_HOST = "_timeline_of_host"  # An attribute of errors.
# SQLSTATEs of errors that pass (PostgreSQL manual, appendix A): could not serialize, deadlock, lock not available,
# connection exceptions, shutdown by an operator, and read-only: after a failover, a kept connection may lead to such a server.
_PASSING = ("40001", "40P01", "55P03", "08", "57P", "25006")
# Errors about locks among them.
_OF_LOCKS = ("40P01", "55P03")
# Errors after which a connection is of no use, though Django does not call them ``OperationalError``: read-only, and a
# transaction that was idle, or lasted, for longer than the server allows.
_ENDING = ("25006", "25P03", "25P04")
# Errors that refuse the data that was written: cardinality, data, constraints, checks, errors of triggers, limits.
_REFUSING = ("21", "22", "23", "27", "44", "54", "P0")


def is_usable(using: str) -> bool:
    """Whether there is a connection that answers, and can write. As Django's ``is_usable``, it does not use Django's cursor."""
    connection = connections[using]
    return takes_writes(connection) if dialect_of(using).has_settings else connection.is_usable()


def takes_writes(connection: BaseDatabaseWrapper) -> bool:
    """The same for any connection to PostgreSQL."""
    if connection.connection is None:
        return False
    statement = dialect_of(connection.alias).sql("takes_writes")
    try:
        with connection.wrap_database_errors, connection.connection.cursor() as cursor:
            cursor.execute(statement)
            [answer] = cursor.fetchone()
    except (DatabaseError, InterfaceError):
        return False
    return bool(answer)


def drop_unless_usable(using: str) -> None:
    """Close a connection that is not usable; the next statement makes a new one. A transaction is left to whoever began it."""
    connection = connections[using]
    if connection.connection is not None and not connection.in_atomic_block and not is_usable(using):
        drop(using)


def drop(using: str) -> None:
    """Close this thread's connection, also where it came from a pool: the pool does not lend it to anybody again."""
    connection = connections[using]
    if connection.connection is not None and not connection.in_atomic_block and dialect_of(using).has_settings:
        with suppress(DatabaseError, InterfaceError), connection.wrap_database_errors:
            connection.connection.close()
    connection.close()


class catching:
    """Keep any error of the host's code, since it is an outcome. ``LeaseLost`` goes on: the attempt is not ours any more."""

    # No generator: it would take three times as long, and several are entered for each task.
    __slots__ = ("_caught",)

    def __init__(self, caught: list[Exception]) -> None:
        self._caught = caught

    def __enter__(self) -> None:
        """Enter."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        """Keep the error."""
        if not isinstance(error, Exception) or isinstance(error, LeaseLost):
            return False
        self._caught.append(error)
        return True


def drop_if_lost(error: BaseException, using: str) -> None:
    """
    Close a connection that is lost or cannot write, so that the outcome gets a new one. What is no ``Exception`` may have come
    in the middle of a query: then the connection is asked, too.
    """
    if not isinstance(error, Exception) or is_of_the_connection(error):
        drop_unless_usable(using)


def is_of_the_connection(error: Exception) -> bool:
    """Whether the error says nothing of a statement: on another connection, or later, the statement may succeed."""
    ends = isinstance(error, DatabaseError) and sqlstate_of(error) in _ENDING
    return ends or isinstance(error, OperationalError | InterfaceError)


def is_passing(error: BaseException) -> bool:
    """Whether the database caused the error, not the handler, and a retry may help: locked, deadlock, connection lost."""
    if not _is_of_database(error):
        return False
    sqlite, sqlstate = _codes(error)
    lost = isinstance(error, OperationalError | InterfaceError) and not sqlite and not sqlstate
    return lost or sqlite.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or sqlstate.startswith(_PASSING)


@contextmanager
def of_host() -> Iterator[None]:
    """Mark errors of statements that functions of the host make while an outcome is written."""
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        setattr(error, _OF_HOST, True)
        raise


def is_of_a_lock(error: Exception) -> bool:
    """Whether the error says that a lock could not be had in time, or because of a deadlock. PostgreSQL only."""
    return isinstance(error, DatabaseError) and sqlstate_of(error) in _OF_LOCKS


def may_be_written_later(error: Exception) -> bool:
    """
    Whether an outcome may be written later: after any error of the database, unless it refused the data. This is more than
    ``is_passing``, as a cancelled statement or a read-only database says nothing against the work of a handler. What the host's
    own statements have raised has to pass.
    """
    if not _is_of_database(error) or isinstance(error, DataError | IntegrityError):
        return False
    if getattr(error, _OF_HOST, False):  # The next try would raise it, too.
        return is_passing(error)
    return not _codes(error)[1].startswith(_REFUSING)


def _is_of_database(error: BaseException) -> bool:
    return isinstance(error, DatabaseError | InterfaceError) and error.__cause__ is not None


def _codes(error: BaseException) -> tuple[str, str]:
    """The name of SQLite's error, and the SQLSTATE; empty if there is none."""
    return str(getattr(error.__cause__, "sqlite_errorname", "")), sqlstate_of(error)
