"""Notice which tasks are changed by a block of code: for example by an exit that a handler causes for other tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import UUID

_noticed: ContextVar[set[UUID] | None] = ContextVar("timeline_noticed", default=None)


@contextmanager
def noticing() -> Iterator[set[UUID]]:
    """Collect the ids of the tasks that are changed within the block, also in copies of this context."""
    noticed: set[UUID] = set()
    token = _noticed.set(noticed)
    try:
        yield noticed
    finally:
        _noticed.reset(token)


def notice(task_ids: Iterable[UUID]) -> None:
    """Report that these tasks were changed. It costs nothing if nobody collects the ids."""
    if (noticed := _noticed.get()) is not None:
        noticed.update(task_ids)
