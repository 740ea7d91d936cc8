"""Sort the errors that the database raises: those that pass, those that refuse data, those that have ended the connection."""

from __future__ import annotations

from contextlib import AbstractContextManager

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError, connections

from timeline.exceptions import LeaseLost
from timeline.models.sqlstates import sqlstate_of

# SQLSTATEs of errors that pass (PostgreSQL manual, appendix A): could not serialize, deadlock, lock not available,
# connection exceptions, shutdown by an operator.
_PASSING = ("40001", "40P01", "55P03", "08", "57P")

# Errors about locks among them.
_OF_LOCKS = ("40P01", "55P03")

# Errors that refuse the data that was written: cardinality, data, constraints, checks, errors of triggers, limits.
_REFUSING = ("21", "22", "23", "27", "44", "54", "P0")


class _Catching:
    """A context manager. It is a class, since a generator takes three times as long, and several are entered for each task."""

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


def catching(caught: list[Exception]) -> AbstractContextManager[None, bool]:
    """
    Keep any error that the host's code raises within the block, since it is an outcome. ``LeaseLost`` is none: the attempt
    is not ours any more, and so this error goes on.
    """
    return _Catching(caught)


def drop_if_lost(error: Exception, using: str) -> None:
    """Close a connection that is lost, so that the outcome is written on a new one."""
    connection = connections[using]
    if is_passing(error) and not connection.in_atomic_block and not connection.is_usable():
        connection.close()


def is_passing(error: Exception) -> bool:
    """Whether the database caused the error, not the handler, and a retry may help: locked, deadlock, connection lost."""
    if not _is_of_database(error):
        return False
    sqlite, sqlstate = _codes(error)
    lost = isinstance(error, OperationalError | InterfaceError) and not sqlite and not sqlstate
    return lost or sqlite.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or sqlstate.startswith(_PASSING)


def is_of_a_lock(error: Exception) -> bool:
    """Whether the error says that a lock could not be had in time, or because of a deadlock. PostgreSQL only."""
    return isinstance(error, DatabaseError) and sqlstate_of(error) in _OF_LOCKS


def may_be_written_later(error: Exception) -> bool:
    """
    Whether an outcome that could not be written may be written later: after any error of the database, unless it refused the
    data.

    This has more errors than ``is_passing``, since it is about our own statements. The host may cancel statements that take
    long, or the database may be read-only for a while: this says nothing against the work of a handler.
    """
    if not _is_of_database(error) or isinstance(error, DataError | IntegrityError):
        return False
    return not _codes(error)[1].startswith(_REFUSING)


def _is_of_database(error: Exception) -> bool:
    return isinstance(error, DatabaseError | InterfaceError) and error.__cause__ is not None


def _codes(error: Exception) -> tuple[str, str]:
    """The name of SQLite's error, and the SQLSTATE; empty if there is none."""
    return str(getattr(error.__cause__, "sqlite_errorname", "")), sqlstate_of(error)
