"""
A pipeline of three groups: while handlers of one run, the side thread records the one before and begins the next.

It is not needed to understand how a task is run: ``GroupRunner`` does the same, one thing after the other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any, Final, TypeVar
from uuid import UUID

from timeline.engine.groups import BUDGET, Attempt, Keeper, Watch, look_ahead
from timeline.models import ScheduledTask
from timeline.worker.group_runner import Group, GroupRunner
from timeline.worker.process import leaves_time
from timeline.worker.threads import SideThread

Answer = TypeVar("Answer")

logger = logging.getLogger("timeline")
# The next group is begun at least so long before the present one is expected to end; sooner, if begin and look take longer.
LEAD: Final = timedelta(milliseconds=15)
SPARE: Final = 4 / 3  # Factor of the average time that begin and look have taken.
WEIGHT: Final = 0.3  # Weight of the newest value in this average.
GUESSES: Final = 3  # How often the time to begin is guessed, each time from how many handlers have run.


class LateRecorder(Watch):
    """Has outcomes recorded on the side thread while the next handlers run. Their leases are extended until then."""

    def __init__(self, watch: Watch, side_thread: SideThread) -> None:
        self._watch = watch
        self._side_thread = side_thread
        self._recording: Future[list[ScheduledTask]] | None = None
        self._kept: set[tuple[UUID, int]] = set()  # Ids of tasks, and numbers of attempts.
        self._spent = 0.0  # Seconds in handlers whose outcomes are not yet being recorded.
        self._behind = 0.0  # Seconds in handlers whose outcomes are being recorded.
        self.ran = 0  # How many handlers of the group have run.
        self.over = threading.Event()  # Set when all of them have.
        self._lock = threading.Lock()

    def begin(self, over: threading.Event) -> threading.Event:
        """Begin a group. Returns ``over``, which is set when all its handlers have run."""
        self.ran, self.over = 0, over
        return over

    def stopping(self) -> bool:
        """Whether to enter no further handler."""
        return self._watch.stopping()

    def entered(self, *tasks: ScheduledTask) -> None:
        """Extend the leases of these attempts."""
        self._watch.entered(*tasks)

    def left(self, *tasks: ScheduledTask) -> None:
        """Stop extending them, but for those whose outcomes are still being recorded."""
        with self._lock:
            self._watch.left(*(task for task in tasks if (task.id, task.attempt) not in self._kept))

    def line_up(self, attempts: Iterable[Attempt]) -> None:
        """These attempts will be entered later."""
        self._watch.line_up(attempts)

    def remaining(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """The attempts that nobody has given back since."""
        return self._watch.remaining(attempts)

    def looking(self) -> AbstractContextManager[object]:
        """A last look is under way."""
        return self._watch.looking()

    def is_killed(self) -> bool:
        """Whether this process is being ended from outside."""
        return self._watch.is_killed()

    def abandon(self) -> None:
        """Let another thread give back tasks that were begun and not entered."""
        self._watch.abandon()

    def take(self, attempt: Attempt) -> bool:
        """Take an attempt to enter its handler."""
        return self._watch.take(attempt)

    def call(self, attempts: Sequence[Attempt], act: Callable[[], Answer], *, undone: Sequence[Attempt] = ()) -> Answer:
        """Call a handler that may take only so long."""
        return self._watch.call(attempts, act, undone=undone)

    def under_way(self, attempt: Attempt, cancel: Callable[[], object]) -> None:
        """A coroutine that may take only so long is under way."""
        self._watch.under_way(attempt, cancel)

    def is_in_time(self, attempt: Attempt) -> bool:
        """Whether it came back in time."""
        return self._watch.is_in_time(attempt)

    def more(self, task_key: str, most: int) -> list[Attempt]:
        """Begin more of a kind."""
        return self._watch.more(task_key, most)

    def lend(self, record: Callable[[], None] | None) -> None:
        """Let another thread record finished outcomes, if this thread is held up."""
        self._watch.lend(record)

    def lend_transaction(self, entered: Sequence[Attempt], break_off: Callable[[], object] | None) -> None:
        """Let another thread break off a transaction, if one of its handlers holds up this thread."""
        self._watch.lend_transaction(entered, break_off)

    def took(self, task_key: str, count: int, seconds: float) -> None:
        """Learn the pace."""
        self.ran += count
        self._spent += seconds
        self._watch.took(task_key, count, seconds)

    def keep_up(self) -> bool:
        """Wait if handlers of unrecorded outcomes took as long as a group may: a crash repeats them. Tell whether it had to."""
        is_recording = self._recording is not None and not self._recording.done()
        if not is_recording or self._behind + self._spent < BUDGET.total_seconds():
            return False
        self.catch_up()
        return True

    def keeper(self) -> Keeper | None:
        """The keeper of outcomes that cannot be written now."""
        return self._watch.keeper()

    def make_room(self) -> bool:
        """Wait while it keeps too many."""
        return self._watch.make_room()

    def catch_up(self) -> None:
        """Wait for outcomes that are being recorded; ``settle`` gives the result."""
        if self._recording is not None:
            wait([self._recording])

    def settle(self, tasks: Sequence[ScheduledTask], record: Callable[[], list[ScheduledTask]]) -> list[ScheduledTask]:
        """Have these outcomes recorded on the side thread. Wait for the outcomes before them, and give the tasks of those."""
        self.over.set()
        with self._lock:
            self._kept |= {(task.id, task.attempt) for task in tasks}
        self._behind, self._spent = self._spent, 0.0
        before, self._recording = self._recording, self._side_thread.submit(self._record, tasks, record)
        return before.result() if before is not None else []

    def settled(self) -> list[ScheduledTask]:
        """Wait for outcomes that are being recorded, and give their tasks."""
        last, self._recording = self._recording, None
        return last.result() if last is not None else []

    def _record(self, tasks: Sequence[ScheduledTask], record: Callable[[], list[ScheduledTask]]) -> list[ScheduledTask]:
        try:
            return record()
        finally:
            with self._lock:
                self._kept -= {(task.id, task.attempt) for task in tasks}
                self._watch.left(*tasks)


def runner_of(side_thread: SideThread | None, **given: Any) -> GroupRunner:
    """A pipeline if there is a side thread; else what runs groups on this thread, with the arguments of ``GroupRunner``."""
    return GroupRunner(**given) if side_thread is None else Pipeline(side_thread=side_thread, **given)


class _StoppingWatch(Watch):
    """Tells a run to stop, so that it gives everything back."""

    def stopping(self) -> bool:
        return True


@dataclass(kw_only=True)
class Pipeline(GroupRunner):
    """Runs groups; meanwhile the side thread records outcomes, and begins the next group and takes its last look."""

    side_thread: SideThread

    def __post_init__(self) -> None:
        super().__post_init__()
        self._recorder = LateRecorder(self.thread_watch, self.side_thread)
        self._ahead = 0.0  # Seconds that it takes to begin a group and to look at it, on average.

    def run_and_begin(self, group: Group) -> tuple[int, Group]:
        """Run a group; begin the next one meanwhile, or afterwards if its handlers leave no time."""
        if not self._leaves_time(group):
            self._recorder.catch_up()
            return super().run_and_begin(group)
        over = self._recorder.begin(threading.Event())
        following = self.side_thread.submit(self._begin_ahead, group, over)
        try:
            done = self.run_group(group, self._recorder)
        except BaseException:
            over.set()
            self._give_back(following)
            raise
        over.set()
        return done, following.result()

    def finish(self) -> int:
        """Wait until the outcomes of the last group are recorded."""
        return len(self._recorder.settled())

    def _leaves_time(self, group: Group) -> bool:
        """Whether handlers leave time to begin the next group. One slow task, or one tried before, may take any time."""
        if not group.attempts or not leaves_time(group.task_key, self.watch.pace):
            return False
        fresh = group.attempts[0].task.attempt == 1
        return len(group.attempts) > 1 or (fresh and self.watch.pace.most(group.task_key) > 1)

    def _begin_ahead(self, running: Group, over: threading.Event) -> Group:
        """Begin the next group shortly before this one ends. Look at it only if running handlers do not change its tasks."""
        lead = max(LEAD.total_seconds(), SPARE * self._ahead)
        for _guess in range(GUESSES):
            left = (len(running.attempts) - self._recorder.ran) * self.watch.pace.seconds(running.task_key)
            over.wait(max(left - lead, 0))
        begun = monotonic()
        group = self._begin_and_look(running)
        self._ahead += WEIGHT * (monotonic() - begun - self._ahead)
        return group

    def _begin_and_look(self, running: Group) -> Group:
        group = self.begin(others_run=True)
        if self._leaves_time(group) and not group.entities & running.entities:
            group.attempts, group.ended = look_ahead(
                group.attempts, clock=self.clock, using=self.using, watch=self.watch
            )
            group.looked = True
            self.thread_watch.left(*group.ended)
        return group

    def _give_back(self, following: Future[Group]) -> None:
        """Give back tasks that were begun and will not run; if that fails, their leases run out."""
        try:
            self.run_group(following.result(), _StoppingWatch())
        except Exception as error:  # noqa: BLE001 (what brought us here is raised, and tells more)
            logger.warning("What was begun ahead is not given back; its leases run out: %s", error)
