"""Listen: wake a process that polls as soon as something is due, rather than at its next poll."""

from __future__ import annotations

import logging
import threading
from selectors import EVENT_READ, DefaultSelector
from types import TracebackType
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, NotSupportedError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from timeline.dialects import dialect_of
from timeline.signals import CHANNEL, work_due, work_soon
from timeline.worker.alarm import Alarm

logger = logging.getLogger("timeline")

PATIENCE: Final = 0.25  # Seconds of one wait, after which it is seen whether to stop.
FIRST_PAUSE: Final = 1.0  # Seconds until the next try to listen; doubled each time,
LONGEST_PAUSE: Final = 300.0  # up to this.
# Where the host says nothing else. A network that has forgotten the connection is noticed within a minute.
OPTIONS: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


class Listener:
    """
    Rings the alarm, within a ``with`` block, when something is due or soon will be.

    It hears its own process on every database. On PostgreSQL it hears the others too, on a thread and a connection of its own;
    where that is not to be had, it says so and tries again from time to time. Nothing depends on it but how soon.

    Args:
        using: Database alias.
        alarm: Of whoever polls.
    """

    def __init__(self, using: str, alarm: Alarm) -> None:
        self._using = using
        self._alarm = alarm
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="timeline-listener", daemon=True)
        self._pause = FIRST_PAUSE

    def __enter__(self) -> Listener:
        """Begin to listen."""
        for signal in (work_due, work_soon):
            signal.connect(self._hear)
        if dialect_of(self._using).can_notify:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Listen no more, and let the connection go."""
        for signal in (work_due, work_soon):
            signal.disconnect(self._hear)
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(4 * PATIENCE)  # It ends with the process if it is still trying to connect.

    def _hear(self, *, using: str, **_extra: Any) -> None:
        if using == self._using:
            self._alarm.ring()

    def _listen(self) -> None:
        while not self._stop.is_set():
            connection = own_connection(self._using)
            try:
                with connection.wrap_database_errors:
                    listen_on(connection)
                    self._hear_others(connection)
            except (DatabaseError, InterfaceError) as error:
                self._rest(error)
            finally:
                connection.close()

    def _hear_others(self, connection: BaseDatabaseWrapper) -> None:
        if self._pause > FIRST_PAUSE:
            logger.info("What is due wakes this process again.")
        self._pause = FIRST_PAUSE
        self._alarm.ring()  # Something may have come while nobody listened.
        while not self._stop.is_set():
            if has_heard(connection.connection):
                self._alarm.ring()

    def _rest(self, error: Exception) -> None:
        if self._pause == FIRST_PAUSE:
            logger.info("What is due waits for the next poll, as nothing wakes this process: %s", error)
        self._stop.wait(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)


def own_connection(using: str) -> BaseDatabaseWrapper:
    """Make a connection like this alias's, not out of Django's pool, and not open yet."""
    connection = connections[using].copy()
    options = connection.settings_dict["OPTIONS"]
    options.pop("pool", None)
    connection.settings_dict["OPTIONS"] = OPTIONS | options
    return connection


def listen_on(connection: BaseDatabaseWrapper) -> None:
    """
    Open it and begin to listen.

    Raises:
        DatabaseError: if it does not open, or is none to listen on. Behind a pool that hands connections from transaction to
            transaction, we would listen on one that others are given, and hear nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [pid] = cursor.fetchone()
        if pid != connection.connection.info.backend_pid:
            raise NotSupportedError("a connection pool stands between this process and PostgreSQL")
        cursor.execute(f"LISTEN {CHANNEL}")


def has_heard(driver: Any) -> bool:
    """
    Wait for others on a connection that listens, and say whether they announced something.

    Args:
        driver: The driver's own connection. psycopg 3 waits by itself; psycopg2 has a list of what has come.
    """
    if callable(driver.notifies):
        return bool(list(driver.notifies(timeout=PATIENCE, stop_after=1)))
    with DefaultSelector() as waiting:
        waiting.register(driver, EVENT_READ)
        waiting.select(PATIENCE)
    driver.poll()
    heard = bool(driver.notifies)
    driver.notifies.clear()
    return heard
