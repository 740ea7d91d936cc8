"""Cursors for a statement that is sent very often: the server puts its values in, and the cursor is kept."""

from __future__ import annotations

import threading
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from timeline.dialects import is_by_psycopg3

_kept = threading.local()  # Alias → the driver's connection of this thread, and our cursor of it.


def bound_cursor(connection: BaseDatabaseWrapper) -> Any:
    """
    Give a cursor for one statement without a semicolon. Its caller fetches all rows, and does not close it.

    Where Django's own would write the values into the text, this one sends them beside it: that takes half the time, and needs
    no prepared statement, which some poolers do not allow. Wrappers of the host see the statement as any other. Where the host
    has cursors of its own, and on other drivers, it is Django's.
    """
    found: Any = connection
    found.close_if_health_check_failed()
    found.ensure_connection()
    driver = found.connection
    if not is_by_psycopg3(connection) or not driver.cursor_factory.__module__.startswith("django."):
        return connection.cursor()
    kept: dict[str, tuple[Any, Any]] = vars(_kept)
    before = kept.get(connection.alias)
    if before is None or before[0] is not driver:
        before = kept[connection.alias] = driver, found.Database.Cursor(driver)
    return found._prepare_cursor(before[1])
