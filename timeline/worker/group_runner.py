"""Run groups one after the other, and the supervisor that looks at the threads which do so."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic, sleep
from typing import Final, NamedTuple

from django.db import connections

from timeline.engine.groups import BUDGET, Attempt, Look, Watch, run_begun
from timeline.models import EntityRef, ScheduledTask
from timeline.models.entities import NO_ENTITY
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.process import LAG
from timeline.worker.thread_watch import ThreadWatch

logger = logging.getLogger("timeline")

TICK: Final = 0.2  # Seconds between two looks.

REST: Final = 1.0  # Seconds until the next look at a thread, after the database failed.


class Supervisor:
    """
    Looks several times a second at each thread of this process that runs handlers. It starts with the first of these threads,
    and has a connection only while it has something to write.
    """

    def __init__(self) -> None:
        self._watches: set[ThreadWatch] = set()
        self._owner = 0

    @contextmanager
    def watching(self, watch: ThreadWatch) -> Iterator[None]:
        """Watch a thread within a ``with`` block."""
        if self._owner != os.getpid():  # Threads do not survive a fork, and its old watches mean nothing.
            self._watches, self._owner = set(), os.getpid()
            threading.Thread(target=self._watch, name="timeline-supervisor", daemon=True).start()
        self._watches.add(watch)
        try:
            yield
        except BaseException:
            watch.abandon()
            raise
        finally:
            watch.close()
            if watch.is_over(monotonic()):
                self._watches.discard(watch)

    def _watch(self) -> None:
        while True:
            sleep(TICK)
            for watch in list(self._watches):
                self._see_to(watch)
                if watch.is_over(monotonic()):
                    self._watches.discard(watch)

    def _see_to(self, watch: ThreadWatch) -> None:
        try:
            acted = True
            try:
                acted = watch.see_to(monotonic())
            finally:
                if acted:
                    connections[watch.using].close()
        except Exception as error:  # noqa: BLE001 (whatever is wrong at one of them, the others are watched over)
            logger.warning("What is held up is not given back yet: %s", error)
            watch.rest(monotonic() + REST)


supervisor = Supervisor()


@dataclass(slots=True)
class Busy:
    """
    Whether handlers run while the next group is begun: then no task that was tried before is begun. If one of the handlers
    ended this process, this task would count as lost.
    """

    others_run: bool = False


class RunCounts(NamedTuple):
    """How many attempts were begun, and how many outcomes are recorded."""

    begun: int
    ended: int


@dataclass(slots=True)
class Group:
    """Attempts that are going to run, maybe none. ``ended`` are tasks that the last look ended; ``looked``: it is done."""

    attempts: list[Attempt]
    is_last: bool
    ended: list[ScheduledTask] = field(default_factory=list)
    looked: bool = False

    @property
    def task_key(self) -> str:
        """The kind of all of them."""
        return self.attempts[0].task.task_key

    @property
    def entities(self) -> set[EntityRef]:
        """The entities of its tasks."""
        return {attempt.task.entity_ref for attempt in self.attempts} - {NO_ENTITY}


@dataclass(kw_only=True)
class GroupRunner:
    """
    Runs groups one after the other, on this thread.

    Args:
        groups: Begins the next group when asked, on the thread that asks. Empty: ask again when no handler runs.
        more: Begins at most so many more of a kind while some of it run side by side.
        hand_on: Leaves tasks given to this worker and not begun to others; called when a handler holds it up.
        disown: Replaces a thread that does not come back by another; gives whether it did.
    """

    groups: Iterator[list[Attempt]]
    busy: Busy
    clock: Callable[[], datetime]
    using: str
    watch: Heartbeat
    more: Callable[[str, int], list[Attempt]] | None = None
    hand_on: Callable[[], object] | None = None
    disown: Callable[[threading.Thread], bool] | None = None

    def __post_init__(self) -> None:
        self.thread_watch = ThreadWatch(
            self.watch, clock=self.clock, using=self.using, more=self.more, hand_on=self.hand_on, disown=self.disown
        )

    def run(self) -> RunCounts:
        """Run all groups, watched by the supervisor; not inside a test's transaction: other threads cannot see its rows."""
        if connections[self.using].in_atomic_block:
            return self._run_all()
        with self.watch.at_work(), supervisor.watching(self.thread_watch):
            return self._run_all()

    def _run_all(self) -> RunCounts:
        begun, ended = 0, 0
        group = self.begin()
        while not group.is_last:
            begun += len(group.attempts) + len(group.ended)
            done, following = self.run_and_begin(group)
            ended += len(group.ended) + done
            group = following
        return RunCounts(begun, ended + self.finish())

    def begin(self, *, others_run: bool = False) -> Group:
        """Begin the next group."""
        self.busy.others_run = others_run
        attempts = next(self.groups, None)
        self.thread_watch.line_up(attempts or ())
        return Group(attempts or [], attempts is None)

    def run_and_begin(self, group: Group) -> tuple[int, Group]:
        """Run a group, and begin the next one; give how many outcomes were recorded."""
        return self.run_group(group, self.thread_watch), self.begin()

    def run_group(self, group: Group, watch: Watch) -> int:
        """Run a group; give how many outcomes were recorded."""
        look = look_left(group, self.watch.pace.seconds(group.task_key)) if group.attempts else Look.DONE
        return len(run_begun(group.attempts, clock=self.clock, using=self.using, watch=watch, look=look))

    def finish(self) -> int:
        """Record the remaining outcomes; give how many there were."""
        return 0


def look_left(group: Group, seconds: float) -> Look:
    """
    The part of the last look that is left: all of it if it was long ago and the last task would be entered too late. How long
    handlers take is a guess. After a fresh look, only tasks that are left when its time is up are checked again.
    """
    age = monotonic() - group.attempts[0].seen_at
    is_fresh = age < LAG.total_seconds()
    if not group.looked:
        return Look.DUE if is_fresh else Look.DUE_LATE
    others = (len(group.attempts) - 1) * seconds
    return Look.DONE if is_fresh or age + others < BUDGET.total_seconds() else Look.DUE_LATE
