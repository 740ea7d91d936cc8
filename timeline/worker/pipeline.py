"""
The pipeline: three groups are in work at a time. While the handlers of one group run, the side thread first records the
outcomes of the group before, and then begins the next group and takes its last look.

It is not needed to understand how a task is run: ``GroupRunner`` does the same, one thing after the other.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any, Final

from timeline.engine.running import Watch, look_ahead
from timeline.worker.group_runner import Group, GroupRunner
from timeline.worker.late_recorder import LateRecorder
from timeline.worker.side_thread import SideThread
from timeline.worker.sizing import leaves_time

logger = logging.getLogger("timeline")

# The next group is begun at least so long before the present one is expected to end; sooner, if begin and look take longer.
LEAD: Final = timedelta(milliseconds=15)
SPARE: Final = 4 / 3  # Factor of the average time that begin and look have taken.
WEIGHT: Final = 0.3  # Weight of the newest value in this average.
GUESSES: Final = 3  # How often the time to begin is guessed, each time from how many handlers have run.


def runner_of(side_thread: SideThread | None, **given: Any) -> GroupRunner:
    """
    Give an object that runs groups: a pipeline, if there is a side thread.

    Args:
        side_thread: The side thread of this thread; None: this thread does everything.
        given: As for ``GroupRunner``.
    """
    return GroupRunner(**given) if side_thread is None else Pipeline(side_thread=side_thread, **given)


class _Stopping(Watch):
    """Tells a run to stop, so that it gives everything back."""

    def stopping(self) -> bool:
        return True


@dataclass(kw_only=True)
class Pipeline(GroupRunner):
    """
    Runs groups one after the other, and uses the time in which handlers wait.

    Args:
        side_thread: Records outcomes, and begins and looks at the next group, while handlers run on this thread.
    """

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
        """
        Whether handlers leave time to begin the next group. One slow task, or a task that was tried before, may take any time.
        """
        if not group.attempts or not leaves_time(group.task_key, self.watch.pace):
            return False
        fresh = group.attempts[0].task.attempt == 1
        return len(group.attempts) > 1 or (fresh and self.watch.pace.most(group.task_key) > 1)

    def _begin_ahead(self, running: Group, over: threading.Event) -> Group:
        """
        Begin the next group shortly before this one ends. Take its last look only if the running handlers do not change its
        tasks.
        """
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
            for task in group.ended:
                self.thread_watch.left(task)
        return group

    def _give_back(self, following: Future[Group]) -> None:
        """Give back tasks that were begun and will not run; if that fails, their leases run out."""
        try:
            self.run_group(following.result(), _Stopping())
        except Exception as error:  # noqa: BLE001 (what brought us here is raised, and tells more)
            logger.warning("What was begun ahead is not given back; its leases run out: %s", error)
