"""Listen: wake a process that polls as soon as a task is due, before its next poll."""

from __future__ import annotations

import logging
import threading
from queue import Empty, SimpleQueue
from selectors import EVENT_READ, DefaultSelector
from time import monotonic
from types import TracebackType
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, NotSupportedError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from timeline.dialects import dialect_of
from timeline.signals import CHANNEL, work_due, work_soon
from timeline.store.database_errors import takes_writes

logger = logging.getLogger("timeline")
PATIENCE: Final = 0.25  # Seconds of one wait; after each, the process checks whether to stop.
FIRST_PAUSE: Final = 1.0  # Seconds until the next try to listen; doubled each time,
LONGEST_PAUSE: Final = 300.0  # up to this.
LOOK_EVERY: Final = (
    10.0  # Seconds between two looks whether the server still takes writes: otherwise nobody announces there.
)
# Used if the host sets nothing else: a network that has dropped the connection is noticed within a minute.
OPTIONS: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


class Alarm:
    """Wakes one sleeper. Safe in threads and, unlike an Event, in a signal handler of the sleeper's own thread."""

    def __init__(self) -> None:
        self._rung: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Wake the sleeper; if it is awake, it does not fall asleep next time. Ringing twice has the same effect as once."""
        if self._rung.empty():
            self._rung.put(None)

    def sleep(self, seconds: float) -> bool:
        """Sleep for at most so long; tell whether it rang."""
        try:
            self._rung.get(timeout=max(seconds, 0.0))
        except Empty:
            return False
        return True


class Listener:
    """
    Rings the alarm, within a ``with`` block, when a task is due or soon will be.

    It hears its own process on every database; on PostgreSQL others too, on a thread and connection of its own. If that is not
    possible, it logs it and tries again. Without announcements, tasks only start later.
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
        """Stop listening, and close the connection."""
        for signal in (work_due, work_soon):
            signal.disconnect(self._hear)
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(4 * PATIENCE)  # If it is still trying to connect, it ends with the process.

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
        self._alarm.ring()  # An announcement may have been missed while nobody listened.
        look_at = monotonic() + LOOK_EVERY
        while not self._stop.is_set():
            if has_heard(connection.connection):
                self._alarm.ring()
            if monotonic() >= look_at:
                if not takes_writes(connection):
                    return
                look_at = monotonic() + LOOK_EVERY

    def _rest(self, error: Exception) -> None:
        if self._pause == FIRST_PAUSE:
            logger.info("What is due waits for the next poll, as nothing wakes this process: %s", error)
        self._stop.wait(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)


def own_connection(using: str) -> BaseDatabaseWrapper:
    """Make a connection with the settings of this alias. It is not from Django's pool, and not open yet."""
    connection = connections[using].copy()
    options = connection.settings_dict["OPTIONS"]
    options.pop("pool", None)
    connection.settings_dict["OPTIONS"] = OPTIONS | options
    return connection


def listen_on(connection: BaseDatabaseWrapper) -> None:
    """Open the connection and begin to listen; an error if that fails, or a pool would give it to others in between."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [pid] = cursor.fetchone()
        if pid != connection.connection.info.backend_pid:
            raise NotSupportedError("a connection pool stands between this process and PostgreSQL")
        cursor.execute(f"LISTEN {CHANNEL}")


def has_heard(driver: Any) -> bool:
    """Wait for announcements; tell whether there was one. psycopg 3 waits by itself; psycopg2 has a list of notifications."""
    if callable(driver.notifies):
        return bool(list(driver.notifies(timeout=PATIENCE, stop_after=1)))
    with DefaultSelector() as waiting:
        waiting.register(driver, EVENT_READ)
        waiting.select(PATIENCE)
    driver.poll()
    heard = bool(driver.notifies)
    driver.notifies.clear()
    return heard
