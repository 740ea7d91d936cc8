"""Cursors for very frequent statements. They are kept, since making one takes a third of the time of such a statement."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from timeline.dialects import is_by_psycopg3

# Kind of cursor and alias → the driver's connection of this thread, its class of cursors, and our cursor wrapped by Django.
_kept = threading.local()
_NONE: Final = (None, None, None)


def bound_cursor(connection: Any) -> Any:
    """
    A cursor for one statement, whose values the server binds. The caller fetches all rows, and does not close the cursor.

    Django's own cursor writes the values into the text of the statement; this one sends them separately, in half the time. It
    prepares no statements, unless ``OPTIONS`` has a ``prepare_threshold``, since some poolers do not allow prepared statements.
    Wrappers of the host see the statement like any other. It is Django's own cursor if the host has a class of cursors, if
    Django logs queries, and with other drivers.
    """
    return _cursor(connection, "bound", lambda driver: connection.Database.Cursor(driver))  # noqa: PLW0108 (only psycopg 3 has it)


def text_cursor(connection: Any) -> Any:
    """Django's own cursor, kept in the same way, for statements that are sent as one text."""
    return _cursor(connection, "text", lambda driver: driver.cursor())


def _cursor(connection: Any, how: str, make: Callable[[Any], Any]) -> Any:
    connection.close_if_health_check_failed()
    if connection.connection is None:
        connection.ensure_connection()
    driver = connection.connection
    kept: dict[str, tuple[Any, Any, Any]] = vars(_kept)
    known_as = f"{how} {connection.alias}"
    its_driver, its_factory, cursor = kept.get(known_as, _NONE)
    if its_driver is driver and its_factory is driver.cursor_factory and not connection.queries_logged:
        return cursor
    own = not is_by_psycopg3(connection) or not driver.cursor_factory.__module__.startswith("django.")
    if own or connection.queries_logged:  # The log of queries would have no text of such a statement.
        return connection.cursor()
    cursor = connection._prepare_cursor(make(driver))
    kept[known_as] = driver, driver.cursor_factory, cursor
    return cursor
