"""``StoryClock``: story time that stands still until a test moves it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone

from timeline.clocks import story_time
from timeline.conf import get_settings
from timeline.dispatch.poll import long_work, stage
from timeline.engine.groups import run
from timeline.features.recurring.verbs import recur
from timeline.hooks import Kept, Poll, hooks
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.store.poll_queries import sign
from timeline.store.task_key_stats import LeftOut
from timeline.testing.outcomes import StoryWatch, errors_of, noted
from timeline.testing.present import present_test, running
from timeline.testing.scope import AheadInTest, ClockScope, autostart
from timeline.timing import check_time, offset_of
from timeline.timing.keywords import known_units

if TYPE_CHECKING:
    from timeline.definition import Timeline

MAX_RUN = 10_000


class StoryClock:
    """
    Story time in a test's hands: within ``with StoryClock() as clock:`` it stands still until the test moves it.

    Moving it runs what falls due on the way, in order and inline, each task at its own time. Runs start by themselves within
    the block, whatever ``TIMELINE["AUTOSTART"]`` says. Machine time (leases, ``timeout=``) stays real.

    What a handler raises is raised here, too, once its outcome is recorded; then the clock stands at the time of that task, and
    can go on. What it raises to choose its ending is not, nor an error that a machine takes as an answer.

    Args:
        start: First story time (aware); left out: the real time.
        only: Timelines that are run, and those that follow them: classes, or names such as ``trial`` or ``accounts.trial``.
            None: as the mark ``timeline`` of the test says, else those that the test is about (see ``ClockScope``).
        raises: Whether errors of handlers are raised. None: as the mark says, else True.
        using: Database alias whose tasks are run.
    """

    def __init__(
        self,
        start: datetime | None = None,
        *,
        only: Sequence[str | type[Timeline]] | None = None,
        raises: bool | None = None,
        using: str = DEFAULT_DB_ALIAS,
    ) -> None:
        self.now = datetime.now(UTC) if start is None else check_time("start", start)
        self.using = using
        test = present_test()
        self.raises = (test.raises if test else True) if raises is None else raises
        only = (test.only if test else ()) if only is None else only
        file = test.file if test else sys._getframe(1).f_code.co_filename
        self._scope = ClockScope(only, file=file, using=using)
        self._ahead = AheadInTest()
        self._ahead.scope = self._scope
        self._kept: list[BaseException] | None = None
        self._not_raised: Counter[str] = Counter()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(running(self))
        self._stack.enter_context(story_time(lambda: self.now))
        self._stack.enter_context(autostart(True))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @contextmanager
    def failing(self) -> Iterator[list[BaseException]]:
        """Raise no errors of handlers within the block; gives a list of them, which grows."""
        before, self._kept = self._kept, []
        try:
            yield self._kept
        finally:
            self._kept = before

    def told(self) -> list[str]:
        """What was run and what was left out so far, and errors that were not raised, in lines."""
        kept = ", ".join(f"{what} ({count})" for what, count in sorted(self._not_raised.items()))
        return [*self._scope.told(), *([f"Errors of handlers, not raised: {kept}."] if kept else [])]

    def told_left_out(self) -> list[str]:
        """What was left out so far, in lines."""
        return list(self._scope.told_left_out())

    def set(self, at: datetime) -> None:
        """Set story time without running anything, also backwards."""
        self.now = check_time("at", at)

    @known_units
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
        Move story time on by calendar units of the current time zone and exact ones, running what falls due on the way.

        Returns:
            The tasks run, in order, with their outcomes; a task that was retried is in it more than once.

        Raises:
            ValueError: for a negative distance.
        """
        offset = offset_of(delta, months=months, weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        return self.run_until(offset.apply(self.now, timezone.get_current_timezone()))

    def run_until(self, until: datetime | Callable[[], object]) -> list[ScheduledTask]:
        """
        Move story time to an aware moment, or from due task to due task until a condition, asked after each, holds.

        Returns:
            The tasks run, in order, with their outcomes.

        Raises:
            AssertionError: if nothing is left to run and the condition does not hold, or after 10,000 tasks.
            Exception: what a handler raised, unless ``raises`` is False.
        """
        self._scope.begin()
        ran: list[ScheduledTask] = []
        end = None if callable(until) else check_time("until", until)
        signed = sign(get_settings().POLL_INTERVAL, using=self.using)
        while long_work(Poll(lambda: self.now, self.using, signed)):
            pass
        while not (callable(until) and until()):
            ready = self._next(end)
            if ready is None:
                assert end is not None, self._in_vain()
                self.now = max(self.now, end)
                self._stage()  # What is on hold becomes due all the same.
                break
            ran += self._run(ready)
            assert len(ran) < MAX_RUN, f"{MAX_RUN} tasks ran. Does one of them schedule itself again and again?"
        self._scope.end(now=self.now)
        return ran

    def run_next(self) -> ScheduledTask | None:
        """Move story time to the next task and run it; None if there is none. Raises what its handler raised, if ``raises``."""
        self._scope.begin()
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
            if any(known.recurring for known in registry):
                recur(self._ahead, now=self.now, using=self.using)
            kept = self._in_the_way()
            if kept:
                for each in hooks().hindrances:
                    each.end(now=self.now, using=self.using)
                kept = self._in_the_way()
            rows, task_keys = ScheduledTask.objects.using(self.using).all(), self._scope.task_keys()
            tasks = rows.taken_of(task_keys, LeftOut(kept)) if kept else rows.with_handler(task_keys)
            self._stage()
            ready = next((task for task in tasks.ready() if _is_free(task, self.using)), None)
            if ready is not None:
                return ready
            upcoming = tasks.ahead(self.now)
            if end is not None:
                upcoming = upcoming.filter(scheduled_at__lte=end)
            first = upcoming.in_order().first()
            until = self._next_end(end if first is None else first.scheduled_at) if kept else None
            if until is None:
                return first
            self.now = until

    def _in_vain(self) -> str:
        said = f"Nothing is left to run, and the condition does not hold. It is {self.now}."
        return "\n".join([said, *self.told_left_out()])

    def _stage(self) -> None:
        while stage(now=self.now, using=self.using):
            pass

    def _in_the_way(self) -> tuple[Kept, ...]:
        """What is in the way of any task."""
        asked = (each.kept(using=self.using) for each in hooks().hindrances)
        return tuple(each for each in asked if each.is_any)

    def _next_end(self, until: datetime | None) -> datetime | None:
        """When the next thing that is in the way ends by itself, if that is not after ``until``."""
        ends = (each.next_end(now=self.now, until=until, using=self.using) for each in hooks().hindrances)
        return min((end for end in ends if end is not None), default=None)

    def _run(self, task: ScheduledTask) -> list[ScheduledTask]:
        self.now = max(self.now, task.scheduled_at)
        source = next((source for source in hooks().sources if source.has(task)), None)
        if source is not None and task.state != State.AVAILABLE:
            return []  # It becomes available, and is run when its source gives it.
        token = None
        if source is not None:
            token = uuid4()
            task = source.claim_one(task, token, now=self.now, using=self.using)
        watch = StoryWatch(self.using)
        with errors_of(task) as errors:
            ran = run(
                task_ids=[task.pk],
                clock=lambda: self.now,
                using=self.using,
                token=token,
                worker="story clock",
                watch=watch,
            )
            ran += watch.record_late(now=self.now)
        self._scope.add(ran)
        for attempt, error in errors.items():
            self._answer(noted(error, task, attempt, now=self.now), task)
        return ran

    def _answer(self, error: BaseException, task: ScheduledTask) -> None:
        """Raise what a handler raised, unless the test is about failures."""
        if self._kept is None and self.raises:
            raise error
        self._not_raised[f"{type(error).__qualname__} in {task.task_key}"] += 1
        if self._kept is not None:
            self._kept.append(error)


def _is_free(task: ScheduledTask, using: str) -> bool:
    """Whether an available task may be under way now."""
    return all(source.is_free(task, using=using) for source in hooks().sources if source.has(task))
