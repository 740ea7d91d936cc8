"""Run groups one after the other: begin a group, run it with its last look and its outcomes, and begin the next one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import NamedTuple

from django.db import connections

from timeline.engine.running import BUDGET, Attempt, Look, Watch, run_begun
from timeline.models import EntityRef, ScheduledTask
from timeline.models.entities import NO_ENTITY
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.sizing import LAG
from timeline.worker.supervisor import supervisor
from timeline.worker.thread_watch import ThreadWatch


@dataclass(slots=True)
class Busy:
    """
    Whether handlers run while the next group is begun. The code that begins groups looks here.

    Args:
        others_run: Whether other handlers run. Then a task that was tried before is not begun: if one of the handlers ended
            this process, this task would count as lost.
    """

    others_run: bool = False


class Counts(NamedTuple):
    """
    How many tasks were run.

    Args:
        begun: Attempts that were begun.
        ended: Tasks whose outcomes are recorded.
    """

    begun: int
    ended: int


@dataclass(slots=True)
class Group:
    """
    Tasks that are going to run.

    Args:
        attempts: Attempts that were begun; maybe none.
        is_last: Whether there are no more tasks.
        ended: Tasks of the group that have ended at the last look.
        looked: Whether the attempts have passed the last look.
    """

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
        groups: Begins the next group each time it is asked, on the thread that asks. An empty group means that it should be
            asked again when no handler runs.
        busy: Where ``groups`` looks whether handlers run.
        clock: Tells story time.
        using: Database alias.
        watch: The worker's watch.
        more: Begins at most so many more of a kind while some of it run side by side.
        hand_on: Leaves tasks that were given to this worker, and not begun, to others; called when a handler holds it up.
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

    def run(self) -> Counts:
        """
        Run all groups, watched by the supervisor; not inside a test's transaction, because other threads cannot see its rows.
        """
        if connections[self.using].in_atomic_block:
            return self._run_all()
        with self.watch.at_work(), supervisor.watching(self.thread_watch):
            return self._run_all()

    def _run_all(self) -> Counts:
        begun, ended = 0, 0
        group = self.begin()
        while not group.is_last:
            begun += len(group.attempts) + len(group.ended)
            done, following = self.run_and_begin(group)
            ended += len(group.ended) + done
            group = following
        return Counts(begun, ended + self.finish())

    def begin(self, *, others_run: bool = False) -> Group:
        """Begin the next group."""
        self.busy.others_run = others_run
        attempts = next(self.groups, None)
        self.thread_watch.hold(attempts or ())
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
    Decide which part of the last look has to be done: all of it, if it was long ago and the last task would be entered too
    late.

    How long handlers take is a guess. After a fresh look, handlers are entered as long as there is time, and only tasks that
    are left then are checked again.
    """
    age = monotonic() - group.attempts[0].seen_at
    is_fresh = age < LAG.total_seconds()
    if not group.looked:
        return Look.DUE if is_fresh else Look.DUE_LATE
    others = (len(group.attempts) - 1) * seconds
    return Look.DONE if is_fresh or age + others < BUDGET.total_seconds() else Look.DUE_LATE
