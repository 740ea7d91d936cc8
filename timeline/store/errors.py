"""What the database raises, sorted: what passes, what refuses, what has ended the connection."""

from __future__ import annotations

from contextlib import AbstractContextManager

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError, connections

from timeline.exceptions import LeaseLost
from timeline.models.sqlstates import sqlstate_of

# SQLSTATEs of PostgreSQL (its manual, appendix A): could not serialize, deadlock, lock not available, connection
# exceptions, shutdown by an operator.
_PASSING = ("40001", "40P01", "55P03", "08", "57P")

# Those of them about locks.
_OF_LOCKS = ("40P01", "55P03")

# And those that refuse what was to be written: cardinality, data, constraints, checks, what triggers raise, limits.
_REFUSING = ("21", "22", "23", "27", "44", "54", "P0")


class _Catching:
    """A class, since a generator takes three times as long, and several are entered for each task."""

    __slots__ = ("_caught",)

    def __init__(self, caught: list[Exception]) -> None:
        self._caught = caught

    def __enter__(self) -> None:
        """Enter."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        """Keep what was raised."""
        if not isinstance(error, Exception) or isinstance(error, LeaseLost):
            return False
        self._caught.append(error)
        return True


def catching(caught: list[Exception]) -> AbstractContextManager[None, bool]:
    """Keep whatever the host's code raises within the block: it is an outcome. That an attempt is not ours any more is none."""
    return _Catching(caught)


def drop_if_lost(error: Exception, using: str) -> None:
    """Let go of a connection that is gone, so that the outcome is written on a new one."""
    connection = connections[using]
    if is_passing(error) and not connection.in_atomic_block and not connection.is_usable():
        connection.close()


def is_passing(error: Exception) -> bool:
    """Whether the database, not the handler, is at fault and trying again helps: locked, deadlock, connection lost."""
    if not _is_of_database(error):
        return False
    sqlite, sqlstate = _codes(error)
    lost = isinstance(error, OperationalError | InterfaceError) and not sqlite and not sqlstate
    return lost or sqlite.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or sqlstate.startswith(_PASSING)


def is_of_a_lock(error: Exception) -> bool:
    """Whether it says that a lock was not to be had, in time or because of a deadlock. PostgreSQL only."""
    return isinstance(error, DatabaseError) and sqlstate_of(error) in _OF_LOCKS


def may_be_written_later(error: Exception) -> bool:
    """
    Whether an outcome that could not be written may be so later: whatever the database raises but a refusal of the data.

    It is wider than ``is_passing``, since it is about our own statements: that the host has them canceled when they take
    long, or that the database is read-only for a while, says nothing against what a handler did.
    """
    if not _is_of_database(error) or isinstance(error, DataError | IntegrityError):
        return False
    return not _codes(error)[1].startswith(_REFUSING)


def _is_of_database(error: Exception) -> bool:
    return isinstance(error, DatabaseError | InterfaceError) and error.__cause__ is not None


def _codes(error: Exception) -> tuple[str, str]:
    """Name of SQLite's error and SQLSTATE; empty where there is none."""
    return str(getattr(error.__cause__, "sqlite_errorname", "")), sqlstate_of(error)
