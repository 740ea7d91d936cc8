"""A filter for ``LOGGING``: records that are written while a handler runs have the ids of its task."""

from __future__ import annotations

import logging
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Final

from opentelemetry import trace

if TYPE_CHECKING:
    from timeline.engine.attempts import Attempt

_running: Final[ContextVar[Attempt | None]] = ContextVar("timeline_otel_running", default=None)


def bind(attempt: Attempt | None) -> Token[Attempt | None]:
    """From now on, in this context, records are of this attempt; give what ``unbind`` needs."""
    return _running.set(attempt)


def unbind(token: Token[Attempt | None]) -> None:
    _running.reset(token)


class TaskIds(logging.Filter):
    """
    Gives each record ``task_id``, ``task_key``, ``run_id``, ``attempt``, ``trace_id`` and ``span_id``, for formatters to name.
    They are empty where there is none; what a record has already stays.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let each record pass."""
        attempt, span = _running.get(), trace.get_current_span().get_span_context()
        task = None if attempt is None else attempt.task
        bound = {
            "task_id": "" if task is None else str(task.id),
            "task_key": "" if task is None else task.task_key,
            "run_id": "" if task is None or task.run_id is None else str(task.run_id),
            "attempt": "" if task is None else task.attempt,
            "trace_id": f"{span.trace_id:032x}" if span.is_valid else "",
            "span_id": f"{span.span_id:016x}" if span.is_valid else "",
        }
        for name, value in bound.items():
            record.__dict__.setdefault(name, value)
        return True
