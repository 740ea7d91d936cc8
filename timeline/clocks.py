"""
The two clocks.

Story time (anchors, due times, the log) is the database's clock, unless a test or a demo sets another. Machine time (leases,
heartbeats) is always the database's real clock, read inside SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.models import DateTimeField, Func
from django.utils.module_loading import import_string

from timeline.conf import get_settings
from timeline.dialects import dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

_override: Callable[[], datetime] | None = None


def story_now(using: str) -> datetime:
    """Read story time: aware, in UTC. Faces do this once and pass it down."""
    if _override is not None:
        return _override()
    if (path := get_settings().CLOCK) is not None:
        clock: Callable[[], datetime] = import_string(path)
        if (told := clock()).utcoffset() is None:
            raise ImproperlyConfigured(f"TIMELINE['CLOCK'] {path} tells a time without a zone. Return an aware one.")
        return told.astimezone(UTC)
    dialect = dialect_of(using)
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("story_now"))
        [value] = cursor.fetchone()
    at: datetime = value if dialect.has_time_types else datetime.fromisoformat(value).replace(tzinfo=UTC)
    return at.astimezone(UTC)


def is_told() -> bool:
    """Whether a test, a demo or the settings tell story time: it is not the database's clock then."""
    return _override is not None or get_settings().CLOCK is not None


class SteadyClock:
    """Story time for a worker, safe in threads: asked once a second and counted on, unless a test or the settings tell it."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._read: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        """Read it: aware, in UTC."""
        if is_told():
            return story_now(self._using)
        at, read = monotonic(), self._read
        if read is None or at - read[1] > 1:
            read = self._read = (story_now(self._using), at := monotonic())
        return read[0] + timedelta(seconds=at - read[1])


class CountedClock:
    """Story time from now on, or from ``begun`` by ``monotonic()``: no statement asks for it, but a told clock is asked."""

    def __init__(self, now: datetime, using: str, *, begun: float | None = None) -> None:
        self._begun = now, monotonic() if begun is None else begun
        self._using = using

    def __call__(self) -> datetime:
        """Read it: aware, in UTC."""
        now, at = self._begun
        return story_now(self._using) if is_told() else now + timedelta(seconds=monotonic() - at)


@contextmanager
def story_time(clock: Callable[[], datetime]) -> Iterator[None]:
    """Let ``clock`` tell story time within this block, in this process."""
    global _override
    previous, _override = _override, clock
    try:
        yield
    finally:
        _override = previous


class MachineTime(Func):
    """
    Machine time as an SQL expression: the real clock at the moment the statement reads it, plus ``plus``.

    ``once``: read when the statement begins, not for each row, so that an index can be used.
    """

    output_field = DateTimeField()
    arity = 0

    def __init__(self, plus: timedelta = timedelta(0), *, once: bool = False, **extra: Any) -> None:
        super().__init__(**extra)
        self.plus = plus
        self.once = once

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, tuple[str | int, ...]]:
        return "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s)", (f"{self.plus.total_seconds():+.3f} seconds",)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, tuple[timedelta, ...]]:
        return ("(SELECT clock_timestamp() + %s)" if self.once else "(clock_timestamp() + %s)"), (self.plus,)
