"""``StoryClock``: story time that stands still until a test moves it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Self

from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone

from timeline.clocks import story_time
from timeline.dispatch.staging import stage
from timeline.engine.running import run
from timeline.models import ScheduledTask
from timeline.operations.recurring import Ahead, recur
from timeline.registry import registry
from timeline.testing.switching import autostart
from timeline.timing import check_time, offset_of

MAX_RUN = 10_000


class StoryClock:
    """
    Story time in a test's hands: within ``with StoryClock() as clock:`` it stands still until the test moves it.

    Moving it runs what falls due on the way, in order and inline, each task at its own time. Runs start by themselves within
    the block, whatever ``TIMELINE["AUTOSTART"]`` says. Machine time (leases) stays real.

    Args:
        start: First story time (aware); left out: the real time.
        using: Database alias whose tasks are run.
    """

    def __init__(self, start: datetime | None = None, *, using: str = DEFAULT_DB_ALIAS) -> None:
        self.now = datetime.now(UTC) if start is None else check_time("start", start)
        self.using = using
        self._ahead = Ahead()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(story_time(lambda: self.now))
        self._stack.enter_context(autostart(True))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def set(self, at: datetime) -> None:
        """Set story time without running anything, also backwards."""
        self.now = check_time("at", at)

    def advance(
        self,
        delta: timedelta = timedelta(0),
        /,
        *,
        months: int = 0,
        weeks: int = 0,
        days: int = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> list[ScheduledTask]:
        """
        Move story time on, running what falls due on the way.

        Args:
            delta: Exact duration.
            months, weeks, days: Calendar units, in the current time zone.
            hours, minutes, seconds: Exact units.

        Returns:
            The tasks run, in order, with their outcomes; a task that was retried is in it more than once.

        Raises:
            ValueError: for a negative distance.
        """
        offset = offset_of(delta, months=months, weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        return self.run_until(offset.apply(self.now, timezone.get_current_timezone()))

    def run_until(self, until: datetime | Callable[[], object]) -> list[ScheduledTask]:
        """
        Move story time to a moment, or from due task to due task until a condition holds.

        Args:
            until: A moment (aware), or a function asked after each task.

        Returns:
            The tasks run, in order, with their outcomes.

        Raises:
            AssertionError: if nothing is left to run and the condition does not hold, or after 10,000 tasks.
        """
        ran: list[ScheduledTask] = []
        end = None if callable(until) else check_time("until", until)
        while not (callable(until) and until()):
            ready = self._next(end)
            if ready is None:
                assert end is not None, f"Nothing is left to run, and the condition does not hold. It is {self.now}."
                self.now = max(self.now, end)
                break
            ran += self._run(ready)
            assert len(ran) < MAX_RUN, f"{MAX_RUN} tasks ran. Does one of them schedule itself again and again?"
        return ran

    def run_next(self) -> ScheduledTask | None:
        """Move story time to the next task and run it; None if there is none."""
        task = self._next(None)
        ran = self._run(task) if task is not None else []
        return ran[0] if ran else None

    def run_due(self) -> list[ScheduledTask]:
        """Run what is due, without moving story time."""
        return self.run_until(self.now)

    def _next(self, end: datetime | None) -> ScheduledTask | None:
        """What runs next: of what is due the first by priority, else the soonest."""
        recur(self._ahead, now=self.now, using=self.using)
        tasks = ScheduledTask.objects.using(self.using).with_handler(registry.task_keys())
        while stage(now=self.now, using=self.using):
            pass
        ready = tasks.ready().first()
        if ready is not None:
            return ready
        upcoming = tasks.upcoming(self.now)
        if end is not None:
            upcoming = upcoming.filter(scheduled_at__lte=end)
        return upcoming.in_order().first()

    def _run(self, task: ScheduledTask) -> list[ScheduledTask]:
        self.now = max(self.now, task.scheduled_at)
        return run(task_ids=[task.pk], clock=lambda: self.now, using=self.using, worker="story clock")
