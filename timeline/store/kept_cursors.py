"""Cursors for statements that are sent very often. They are kept: to make one takes a third of the time of such a statement."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from timeline.dialects import is_by_psycopg3

# How it was made, alias → the driver's connection of this thread, its kind of cursors, and our cursor of it, in Django's.
_kept = threading.local()
_NONE: Final = (None, None, None)


def bound_cursor(connection: Any) -> Any:
    """
    Give a cursor for one statement, with which the server puts the values in. Its caller fetches all rows, and does not
    close it.

    Django's own cursor writes the values into the text; this one sends them beside it, in half the time. It prepares nothing
    unless ``OPTIONS`` has a ``prepare_threshold``: some poolers do not allow that. Wrappers of the host see the statement as
    any other. Where the host has cursors of its own, where Django logs queries, and on other drivers, it is Django's.
    """
    return _cursor(connection, "bound", lambda driver: connection.Database.Cursor(driver))  # noqa: PLW0108 (only psycopg 3 has it)


def text_cursor(connection: Any) -> Any:
    """Give Django's own cursor, kept in the same way: for statements that are sent as one text."""
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
    if own or connection.queries_logged:  # Of a prepared statement, the log of queries would have no text.
        return connection.cursor()
    cursor = connection._prepare_cursor(make(driver))
    kept[known_as] = driver, driver.cursor_factory, cursor
    return cursor
