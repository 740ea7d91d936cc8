"""A part of a transaction that can be undone by itself."""

from __future__ import annotations

from typing import Any, Final

from django.db import connections

NAME: Final = "timeline"


class Savepoint:
    """
    What is written in a transaction since it was last kept. PostgreSQL only.

    As ``atomic()`` within ``atomic()``, with one trip to the database where that makes two, and with an error where that would
    undo without a word: what a broken part has written is not there, whoever takes it for done.

    Args:
        using: Database alias; a transaction is open there.
    """

    def __init__(self, using: str) -> None:
        self._connection: Any = connections[using]  # Its stubs know the hooks of an older Django.
        made, kept = (self._connection.ops.savepoint_create_sql(NAME), self._connection.ops.savepoint_commit_sql(NAME))
        prepares_all = getattr(self._connection.connection, "prepare_threshold", None) == 0
        self._next = [kept, made] if prepares_all else [f"{kept}; {made}"]  # Two statements cannot be prepared as one.
        self._execute(made)
        self._hooks = len(self._connection.run_on_commit)

    def keep(self) -> None:
        """
        Keep what was written, as far as the transaction is kept, and begin the next part.

        Raises:
            DatabaseError: if the part is broken, for somebody caught an error of the database in it, or asked for a rollback.
        """
        self._connection.validate_no_broken_transaction()
        self._execute(*self._next)
        self._hooks = len(self._connection.run_on_commit)

    def undo(self) -> None:
        """
        Undo what was written, with the hooks that were registered for its commit, and begin anew.

        Raises:
            DatabaseError, InterfaceError: if that is not to be had; the whole transaction must be undone then.
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
