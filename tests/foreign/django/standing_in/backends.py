"""
Our backend in the place of the two that Django brings, with what Django's tests ask of these: a memory that can be looked at
and cleared, and a task that has been run when ``enqueue()`` returns.
"""

from __future__ import annotations

from typing import Any

from timeline.django_tasks import TimelineBackend
from timeline.django_tasks.results import results_of
from timeline.models import LogEntry, ScheduledTask
from timeline.testing import StoryClock


class Dummy(TimelineBackend):
    """In the place of ``DummyBackend``: nothing is run."""

    @property
    def results(self) -> list[Any]:
        """How all tasks stand, in the order they were enqueued in."""
        return results_of(list(ScheduledTask.objects.order_by("created_at", "pk")), using="default")

    def clear(self) -> None:
        """Forget all tasks."""
        LogEntry.objects.all().delete()
        ScheduledTask.objects.all().delete()


class Immediate(TimelineBackend):
    """In the place of ``ImmediateBackend``: a worker is there at once."""

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Write the row, and run what is due."""
        with StoryClock(raises=False) as clock:
            result = super().enqueue(task, args, kwargs)
            clock.run_due()
        result.refresh()
        return result
