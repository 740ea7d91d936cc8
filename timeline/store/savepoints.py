"""Savepoints: parts of a transaction that can be undone separately."""

from __future__ import annotations

from typing import Any, Final

from django.db import connections

NAME: Final = "timeline"


class Savepoint:
    """
    The part of a transaction since the last ``keep``. PostgreSQL only.

    This is like ``atomic()`` within ``atomic()``, but the end of a part and the beginning of the next take one trip, not two.
    And it raises where ``atomic()`` would undo silently: what a broken part has written is lost, and the caller has to know.

    Args:
        using: Database alias. A transaction is open on it.
    """

    def __init__(self, using: str) -> None:
        self._connection: Any = connections[using]  # Any, since the type stubs know the hooks of an older Django.
        made, kept = (self._connection.ops.savepoint_create_sql(NAME), self._connection.ops.savepoint_commit_sql(NAME))
        prepares_all = getattr(self._connection.connection, "prepare_threshold", None) == 0
        self._next = [kept, made] if prepares_all else [f"{kept}; {made}"]  # Two statements cannot be prepared as one.
        self._execute(made)
        self._hooks = len(self._connection.run_on_commit)

    def keep(self) -> None:
        """
        Keep what was written, if the transaction is committed later, and begin the next part.

        Raises:
            DatabaseError: if the part is broken: somebody caught an error of the database in it, or asked for a rollback.
        """
        self._connection.validate_no_broken_transaction()
        self._execute(*self._next)
        self._hooks = len(self._connection.run_on_commit)

    def undo(self) -> None:
        """
        Undo what was written, and the hooks that were registered for its commit. Then begin again.

        Raises:
            DatabaseError, InterfaceError: if this is not possible. Then the whole transaction has to be undone.
        """
        self._connection.needs_rollback = False
        try:
            self._execute(self._connection.ops.savepoint_rollback_sql(NAME))
        except BaseException:
            self._connection.needs_rollback = True
            raise
        del self._connection.run_on_commit[self._hooks :]

    def _execute(self, *statements: str) -> None:
        with self._connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
