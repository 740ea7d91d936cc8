"""A thread beside the one that runs handlers: it uses the database meanwhile, on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError, connections

from timeline.dialects import dialect_of

Answer = TypeVar("Answer")


def can_use_side_thread(using: str) -> bool:
    """Whether a second connection can write meanwhile: SQLite allows only one writer."""
    return not dialect_of(using).has_one_writer


class SideThread:
    """
    A thread that does one thing after the other, on a connection of its own.

    Args:
        using: Database alias.
    """

    def __init__(self, using: str) -> None:
        self.using = using
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="timeline-side")

    def __enter__(self) -> SideThread:
        """Start; it runs until the end of the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Finish the submitted calls, and close the connection."""
        self.submit(self._close)
        self._executor.shutdown()

    def submit(self, act: Callable[..., Answer], *given: Any) -> Future[Answer]:
        """Have something done, in the present language and time zone."""
        return self._executor.submit(copy_context().run, self._do, act, *given)

    def _do(self, act: Callable[..., Answer], *given: Any) -> Answer:
        try:
            return act(*given)
        except (DatabaseError, InterfaceError):
            self._close()  # In case the connection is broken: the next call gets a new one.
            raise

    def _close(self) -> None:
        connections[self.using].close()
