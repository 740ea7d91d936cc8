"""What a handler is told of its own execution, and a step of its own."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from timeline.models import Event, ScheduledTask, TimelineRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """
    One execution of one task, as the handler sees it through ``self``.

    Args:
        task: The row, as it was when the attempt started.
        run: Its run; None for an ad hoc task.
        event: The event that caused the row or started its run; None if none did.
        now: Story time at which the attempt started.
        lost: Whether the attempt before this one was lost with its worker: its calls to the outside may have happened.
        idempotency_key: The same for every attempt, retry, move and redrive until one completes; give it to services
            that accept one.
    """

    task: ScheduledTask
    run: TimelineRun | None
    event: Event | None
    now: datetime
    lost: bool
    idempotency_key: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """
    One step under way, as the method sees it through ``self.step``.

    Args:
        name: Of the method, and behind a ``#`` the key it was called with.
        idempotency_key: The same each time this step of this task is done; give it to services that accept one.
    """

    name: str
    idempotency_key: str


# The step under way in this thread, or in this asyncio task.
step_under_way: ContextVar[StepContext | None] = ContextVar("step_under_way", default=None)

RESERVED: Final = frozenset({"tasks", "step", "awaited", *(field.name for field in fields(Context))})

# What a handler calls on ``self``.
VERBS: Final = frozenset({"each", "progress", "aprogress", "fan_out", "wait_for", "sleep"})
