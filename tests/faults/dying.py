"""Die at a point: before or after a statement, before a COMMIT, or after it was done and before it was answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from django.db import connection


class Death(BaseException):
    """The end of a process: nothing catches it as an error."""


class Points:
    """
    Counts the points that an act passes, and dies at one of them.

    From then on nothing that the act does reaches the database: its connection is gone as if the process were, and whatever it
    still asks (in a ``finally``, on a new connection) is refused. The statements of a pipeline, raw ones and those about
    savepoints all pass Django's cursor; COMMIT does not, so that of the connection is taken in hand.

    Args:
        at: Which point, counted from 0; None: pass all.
    """

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.passed: list[str] = []
        self.dead = False
        self._cursors: WeakSet[Any] = WeakSet()  # Of the driver. They end with a process, whoever has them in hand.

    def point(self, name: str) -> None:
        """Pass a point, or die there."""
        if self.dead:
            raise Death
        if len(self.passed) == self.at:
            self.dead = True
            self._cut()
            raise Death
        self.passed.append(name)

    def _cut(self) -> None:
        if connection.connection is not None:
            if connection.vendor == "sqlite":
                # Its file stays locked while a statement is remembered: by a frame that the error of the death remembers, and
                # that by errors that Django makes of it, until all of them are collected.
                for cursor in list(self._cursors):
                    cursor.close()
                connection.connection.rollback()
            connection.connection.close()

    def execute(self, execute: Callable[..., Any], sql: str, parameters: Any, many: bool, context: Any) -> Any:
        """Stand around a statement, as ``execute_wrapper`` wants it."""
        words = " ".join(sql.split()[:2])
        self._cursors.add(context["cursor"].cursor)
        self.point(f"before {words}")
        done = execute(sql, parameters, many, context)
        self.point(f"after {words}")
        return done

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Pass points within; the block ends quietly if it died in it, with Django's connection as in a new process."""
        commit = connection._commit

        def _commit() -> None:
            self.point("before COMMIT")
            commit()
            self.point("after COMMIT")

        connection._commit = _commit
        try:
            with connection.execute_wrapper(self.execute):
                yield
        except BaseException:
            if not self.dead:  # Afterwards whatever is raised says that the connection is gone.
                raise
        finally:
            del connection._commit
            if self.dead:
                connection.close()
                connection.connection = None
                connection.run_on_commit = []
                connection.in_atomic_block = False
                connection.savepoint_ids = []
                connection.atomic_blocks = []
                connection.needs_rollback = False
                connection.closed_in_transaction = False
