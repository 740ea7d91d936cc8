"""Work off groups one after the other; while fast handlers run, the group before is recorded and the next one is begun."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import Final, NamedTuple

from django.db import connections

from timeline.engine.running import BUDGET, Attempt, Look, Watch, look_ahead, run_begun
from timeline.exceptions import UnknownTask
from timeline.models import EntityRef, ScheduledTask
from timeline.models.entities import NO_ENTITY
from timeline.registry import registry
from timeline.worker.aside import Aside
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.lagging import Lagging
from timeline.worker.pace import Pace
from timeline.worker.post import Post
from timeline.worker.warden import warden

logger = logging.getLogger("timeline")

# How long ago a group may have been looked at when it begins to run: so much less time than BUDGET it is planned for.
LAG: Final = timedelta(milliseconds=14)
LEAD: Final = timedelta(milliseconds=15)  # Before a group is expected to be over, the next one is begun and looked at.
SLOW: Final = timedelta(milliseconds=0.5)  # Handlers that are faster leave no time to do anything meanwhile.


@dataclass(slots=True)
class Asking:
    """
    How the next group is asked for.

    Args:
        ahead: Whether others still run. What was tried before is not begun then: it counts as lost if they end this process.
    """

    ahead: bool = False


class Worked(NamedTuple):
    """
    What was worked off.

    Args:
        begun: Attempts.
        ended: Tasks whose outcomes are recorded.
    """

    begun: int
    ended: int


class _Stopping(Watch):
    """Has everything given back."""

    def stopping(self) -> bool:
        return True


def group_size(task_key: str, pace: Pace, *, aside: bool = False) -> int:
    """
    Say how many tasks of a kind to start together: what its declaration says, or what its pace allows.

    Args:
        task_key: The kind.
        pace: Of this process.
        aside: Whether outcomes are recorded aside, and lag behind.
    """
    try:
        declared = registry.task(task_key)[1]
    except UnknownTask:
        return 1
    return declared.at_once or pace.most(task_key, BUDGET - LAG if aside and _leaves_time(task_key, pace) else BUDGET)


def _leaves_time(task_key: str, pace: Pace) -> bool:
    """Whether handlers of this kind leave time for other things: they hold no transaction, and take a while."""
    return registry.task(task_key)[1].is_plain and pace.seconds(task_key) >= SLOW.total_seconds()


@dataclass(slots=True)
class _Group:
    """
    What is going to run.

    Args:
        attempts: Begun; maybe none.
        is_last: Whether there is nothing more.
        ended: Tasks of it that have ended at the last look.
        looked: Whether the attempts have passed the last look.
    """

    attempts: list[Attempt]
    is_last: bool
    ended: list[ScheduledTask] = field(default_factory=list)
    looked: bool = False

    @property
    def task_key(self) -> str:
        """Kind of all of them."""
        return self.attempts[0].task.task_key

    @property
    def entities(self) -> set[EntityRef]:
        """What it is about."""
        return {attempt.task.entity_ref for attempt in self.attempts} - {NO_ENTITY}


@dataclass(kw_only=True)
class WorkingOff:
    """
    Runs groups one after the other.

    Args:
        groups: Begins each as it is asked for, on whatever thread asks; one of none: to be asked again when nothing else runs.
        asking: Where ``groups`` looks how it is asked.
        clock: Tells story time.
        using: Database alias.
        watch: The worker's.
        aside: Where the next one is begun and looked at, and outcomes are recorded, while handlers run that leave time for
            it; None: nowhere, one thing after the other.
        more: Begins more of a kind while some of it run side by side, so many at most.
        hand_on: Lets others have what was given to this worker and has not been begun; called when a handler holds it up.
        disown: Puts another thread in the place of one that does not come back; says whether it did.
    """

    groups: Iterator[list[Attempt]]
    asking: Asking
    clock: Callable[[], datetime]
    using: str
    watch: Heartbeat
    aside: Aside | None
    more: Callable[[str, int], list[Attempt]] | None = None
    hand_on: Callable[[], object] | None = None
    disown: Callable[[threading.Thread], bool] | None = None

    def __post_init__(self) -> None:
        self._post = Post(
            self.watch, clock=self.clock, using=self.using, more=self.more, hand_on=self.hand_on, disown=self.disown
        )
        self._lagging = Lagging(self._post, self.aside) if self.aside is not None else None

    def run(self) -> Worked:
        """Run all, watched over; but not within a test's transaction: no other thread sees what is written there."""
        if connections[self.using].in_atomic_block:
            return self._run_all()
        with self.watch.at_work(), warden.over(self._post):
            return self._run_all()

    def _run_all(self) -> Worked:
        begun, ended = 0, 0
        group = self._begin()
        while not group.is_last:
            begun += len(group.attempts) + len(group.ended)
            done, following = self._run_and_begin(group)
            ended += len(group.ended) + done
            group = following
        return Worked(begun, ended + len(self._lagging.settled() if self._lagging is not None else []))

    def _run_and_begin(self, group: _Group) -> tuple[int, _Group]:
        """Run a group, and begin the next one meanwhile or afterwards; say how many outcomes are recorded."""
        if self.aside is None or self._lagging is None or not self._leaves_time(group):
            if self._lagging is not None:
                self._lagging.catch_up()
            return self._run(group, self._post), self._begin()
        over = self._lagging.over = threading.Event()
        expected = monotonic() + len(group.attempts) * self.watch.pace.seconds(group.task_key)
        following = self.aside.ask(self._begin_ahead, group, over, expected)
        try:
            done = self._run(group, self._lagging)
        except BaseException:
            over.set()
            self._give_back(following)
            raise
        over.set()
        return done, following.result()

    def _leaves_time(self, group: _Group) -> bool:
        """One that fills a group by itself does not, as it may take however long; nor one that was tried before."""
        if not group.attempts or not _leaves_time(group.task_key, self.watch.pace):
            return False
        fresh = group.attempts[0].task.attempt == 1
        return len(group.attempts) > 1 or (fresh and self.watch.pace.most(group.task_key) > 1)

    def _run(self, group: _Group, watch: Watch) -> int:
        return len(
            run_begun(group.attempts, clock=self.clock, using=self.using, watch=watch, look=self._look_at(group))
        )

    def _look_at(self, group: _Group) -> Look:
        """Say what is left of the last look: all of it, if the last of them would be entered too long after it."""
        if not group.attempts:
            return Look.DONE
        age = monotonic() - group.attempts[0].seen_at
        if not group.looked:
            return Look.DUE if age < LAG.total_seconds() else Look.DUE_LATE
        others = (len(group.attempts) - 1) * self.watch.pace.seconds(group.task_key)
        return Look.DONE if age + others < BUDGET.total_seconds() else Look.DUE_LATE

    def _begin(self, *, ahead: bool = False) -> _Group:
        self.asking.ahead = ahead
        attempts = next(self.groups, None)
        self._post.hold(attempts or ())
        return _Group(attempts or [], attempts is None)

    def _begin_ahead(self, running: _Group, over: threading.Event, expected: float) -> _Group:
        """Begin the next one shortly before this one is over; look only at what its handlers do not change."""
        over.wait(expected - LEAD.total_seconds() - monotonic())
        group = self._begin(ahead=True)
        if self._leaves_time(group) and not group.entities & running.entities:
            group.attempts, group.ended = look_ahead(
                group.attempts, clock=self.clock, using=self.using, watch=self.watch
            )
            group.looked = True
            for task in group.ended:
                self._post.left(task)
        return group

    def _give_back(self, following: Future[_Group]) -> None:
        """Give back what was begun and is not going to run; where that fails, its leases run out."""
        try:
            self._run(following.result(), _Stopping())
        except Exception as error:  # noqa: BLE001 (what brought us here is raised, and tells more)
            logger.warning("What was begun ahead is not given back; its leases run out: %s", error)
