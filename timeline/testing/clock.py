"""``StoryClock``: story time that stands still until a test moves it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Self
from uuid import UUID, uuid4

from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone

from timeline.clocks import story_time
from timeline.dispatch.acting_in_bulk import act_in_bulk
from timeline.dispatch.staging import stage
from timeline.engine.attempting import ANY_ATTEMPT
from timeline.engine.running import run
from timeline.lifecycle import State, Trigger
from timeline.models import Hold, ScheduledTask
from timeline.models.task import ScheduledTaskQuerySet
from timeline.operations.recurring import Ahead, recur
from timeline.operations.releasing import release_due
from timeline.registry import registry
from timeline.store.holds import not_on_hold, on_hold
from timeline.store.limited_kinds import LimitedKind
from timeline.store.limiting import take
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
        while act_in_bulk(now=self.now, using=self.using):
            pass
        while not (callable(until) and until()):
            ready = self._next(end)
            if ready is None:
                assert end is not None, f"Nothing is left to run, and the condition does not hold. It is {self.now}."
                self.now = max(self.now, end)
                self._stage()  # What is on hold becomes due all the same.
                break
            ran += self._run(ready)
            assert len(ran) < MAX_RUN, f"{MAX_RUN} tasks ran. Does one of them schedule itself again and again?"
        return ran

    def run_next(self) -> ScheduledTask | None:
        """Move story time to the next task and run it; None if there is none."""
        while (task := self._next(None)) is not None:
            if ran := self._run(task):
                return ran[0]
        return None

    def run_due(self) -> list[ScheduledTask]:
        """Run what is due, without moving story time."""
        return self.run_until(self.now)

    def _next(self, end: datetime | None) -> ScheduledTask | None:
        """What runs next: of what is due the first by priority, else the soonest."""
        while True:
            recur(self._ahead, now=self.now, using=self.using)
            held = on_hold(using=self.using)
            if held.targets:
                release_due(now=self.now, using=self.using)
                held = on_hold(using=self.using)
            rows = ScheduledTask.objects.using(self.using).all()
            tasks = not_on_hold(rows, held, task_keys=registry.task_keys())
            self._stage()
            ready = self._ready(tasks)
            if ready is not None:
                return ready
            upcoming = tasks.upcoming(self.now)
            if end is not None:
                upcoming = upcoming.filter(scheduled_at__lte=end)
            first = upcoming.in_order().first()
            until = self._next_release(end if first is None else first.scheduled_at) if held.targets else None
            if until is None:
                return first
            self.now = until

    def _stage(self) -> None:
        while stage(now=self.now, using=self.using):
            pass

    def _next_release(self, end: datetime | None) -> datetime | None:
        """When the next hold ends by itself, if that is not after ``end``."""
        ahead = Hold.objects.using(self.using).open().filter(lifted_at=None, until__gt=self.now)
        ahead = ahead if end is None else ahead.filter(until__lte=end)
        return ahead.order_by("until").values_list("until", flat=True).first()

    def _run(self, task: ScheduledTask) -> list[ScheduledTask]:
        self.now = max(self.now, task.scheduled_at)
        if task.limit_key and task.state != State.AVAILABLE:
            return []  # It becomes available, and is run when it has a place.
        token = None
        if task.limit_key:
            token = uuid4()
            [task] = self._with_place(task, token)
        return run(task_ids=[task.pk], clock=lambda: self.now, using=self.using, token=token, worker="story clock")

    def _with_place(self, task: ScheduledTask, token: UUID) -> list[ScheduledTask]:
        """Claim the one whose turn it is of those that compete with it."""
        limit = registry.task(task.task_key)[1].limit
        on_hold_too = on_hold(using=self.using).has_entities
        return take(
            Trigger.CLAIM,
            LimitedKind(task.task_key, limit.most if limit else 0, on_hold_too),
            [task.limit_key],
            each=1,
            attempts=ANY_ATTEMPT,
            claim_token=token,
            now=self.now,
            using=self.using,
        )

    def _ready(self, tasks: ScheduledTaskQuerySet) -> ScheduledTask | None:
        """What is available and may be under way: it needs no place, has one, or one is free."""
        return next((task for task in tasks.ready() if not task.limit_key or task.slot or self._has_room(task)), None)

    def _has_room(self, task: ScheduledTask) -> bool:
        limit = registry.task(task.task_key)[1].limit
        held = ScheduledTask.objects.using(self.using).filter(limit_key=task.limit_key, slot__gt=0).count()
        return limit is not None and held < limit.most
