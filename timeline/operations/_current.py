"""Which task this thread of execution is running right now, so that what its handler causes spares it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import UUID

_running: ContextVar[frozenset[UUID]] = ContextVar("timeline_running", default=frozenset())


def running() -> frozenset[UUID]:
    """Ids of the tasks being run here: none, or one."""
    return _running.get()


@contextmanager
def while_running(task_id: UUID) -> Iterator[None]:
    """Mark the task as being run within the block."""
    token = _running.set(frozenset({task_id}))
    try:
        yield
    finally:
        _running.reset(token)
