"""The embedded worker: rescues, stages and runs, without a broker."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from itertools import chain
from time import monotonic
from typing import Any, Final

from timeline.conf import get_settings
from timeline.dispatch.claim import ClaimedBatch, messages_of
from timeline.dispatch.poll import Dispatched, begin_poll, stage_and_tell, tell_poll
from timeline.dispatch.rescue import rescue
from timeline.engine.groups import Attempt
from timeline.registry import registry
from timeline.store.floors import look_anew
from timeline.store.poll_queries import probe_lost
from timeline.timing import EARLIEST
from timeline.worker.batch import Available
from timeline.worker.group_runner import Busy
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.loop import Loop, Sweeper
from timeline.worker.outcome_keeper import OutcomeKeeper
from timeline.worker.pipeline import runner_of
from timeline.worker.threads import RunnerThreads, SideThread, can_use_side_thread

RESCUE_EVERY: Final = timedelta(seconds=2)
STAGE_EVERY: Final = timedelta(milliseconds=100)  # While there is work; more often if more tasks are due than fit.
STAGED: Final = 1000  # Tasks in one statement.


class Worker(Loop):
    """Polls and runs in this process until told to stop. With one thread, handlers run on the thread that polls."""

    def __init__(self, using: str, name: str = "", *, threads: int = 1) -> None:
        super().__init__(using, name)
        self.ran = 0
        self._counting = threading.Lock()
        self._outcome_keeper = OutcomeKeeper(using)
        self._heartbeat = Heartbeat(using, self._stop.is_set, keeper=self._outcome_keeper, worker=self.name)
        self._side_thread: SideThread | None = None
        self._runner_threads: RunnerThreads | None = None
        if threads > 1:
            self._runner_threads = RunnerThreads(
                threads, self._run_ready, using=using, stopping=self._stop.is_set, stop=self.stop
            )
        self._next_rescue = self._next_stage = 0.0
        self._lost: deque[ClaimedBatch] = deque()  # Messages that a broker had, and nobody got: they are run here.
        self._sweeper = Sweeper(using)
        self._memory: dict[str, Any] = {}
        self._staged_at = EARLIEST  # Story time up to which all due tasks have been staged.
        self._was_busy = True  # Whether there was still something to do when the time of the last poll was over.
        self._some_available = True  # Whether there may be some, as far as the last look tells.

    def work(self) -> None:
        """Extend the leases of running tasks meanwhile; with one thread that runs handlers, have a side thread."""
        with ExitStack() as stack:
            stack.callback(self._outcome_keeper.close)
            stack.enter_context(self._heartbeat)
            if self._runner_threads is not None:
                stack.enter_context(self._runner_threads)
            elif can_use_side_thread(self.using):
                self._side_thread = stack.enter_context(SideThread(self.using))
            super().work()

    def turn(self) -> timedelta:
        """Run due tasks, for a poll interval at most; sleep if there was none."""
        return timedelta(0) if self.poll() else self.pause(self._staged_at)

    def poll(self) -> int:
        """Run due tasks, by groups, for a poll interval at most; give how many were begun, or with threads, found due."""
        give_up = monotonic() + get_settings().POLL_INTERVAL.total_seconds()
        self._go_round()
        self._next_stage = 0.0
        taken = self._run_until(give_up) if self._runner_threads is None else self._call(self._runner_threads, give_up)
        if not self._stop.is_set():
            self._sweeper.turn(self._clock)  # It takes longer than most tasks do: no task waits for it that is due.
        self._heartbeat.pace.keep(using=self.using)
        threads_are_busy = self._runner_threads is not None and self._some_available
        self._was_busy = monotonic() >= give_up or threads_are_busy
        return taken

    def _go_round(self) -> None:
        """Do the work that is due from time to time."""
        if self.is_round_due():
            if not self._was_busy:
                look_anew(using=self.using)
            begin_poll(self._clock, self._memory, using=self.using)
        self._heartbeat.give_sign()
        if monotonic() >= self._next_rescue:
            if probe_lost(using=self.using).is_lost:
                lost = rescue(now=self._clock(), using=self.using, runs=registry.task_keys())
                self._lost += messages_of(lost.resend)
            self._next_rescue = monotonic() + RESCUE_EVERY.total_seconds()

    def _begin_more(self, task_key: str, most: int) -> list[Attempt]:
        """Begin more of a kind that runs side by side; if this thread polls, poll meanwhile."""
        if self._runner_threads is None:
            self._go_round()
            self._stage()
        return self._available(Busy()).more(task_key, most)

    def _call(self, threads: RunnerThreads, give_up: float) -> int:
        """Stage due tasks, and let the threads run them."""
        staged = 0
        while True:
            last = self._stage()
            staged += last
            if self._some_available or self._lost:
                threads.call()
            if not last or monotonic() >= give_up:
                return staged

    def _run_ready(self) -> int:
        """Run one group of each of the most urgent kinds."""
        busy = Busy()
        return self._run_groups(chain(self._of_lost_messages(busy), self._available(busy).groups()), busy)

    def _run_until(self, give_up: float) -> int:
        """Run due tasks."""
        busy = Busy()
        return self._run_groups(chain(self._of_lost_messages(busy), self._groups(busy, give_up)), busy)

    def _run_groups(self, groups: Iterator[list[Attempt]], busy: Busy) -> int:
        runner = runner_of(
            self._side_thread,
            groups=groups,
            busy=busy,
            clock=self._clock,
            using=self.using,
            watch=self._heartbeat,
            more=self._begin_more,
            disown=self._runner_threads.replace if self._runner_threads is not None else None,
        )
        counts = runner.run()
        with self._counting:
            self.ran += counts.ended
        return counts.begun

    def _available(self, busy: Busy) -> Available:
        return Available(
            busy=busy,
            clock=self._clock,
            using=self.using,
            watch=self._heartbeat,
            worker=self.name,
            records_late=self._side_thread is not None,
        )

    def _groups(self, busy: Busy, give_up: float) -> Iterator[list[Attempt]]:
        """Begin groups of due tasks, until it is time for another poll or nothing is left."""
        while True:
            self._stage()
            some = False
            for attempts in self._available(busy).groups() if self._some_available else ():
                some = True
                yield attempts
            if not some or monotonic() >= give_up:
                return

    def _of_lost_messages(self, busy: Busy) -> Iterator[list[Attempt]]:
        """Begin what a poll has claimed for Celery, and whose message is lost."""
        while self._lost:
            try:
                batch = self._lost.popleft()
            except IndexError:  # Another thread was quicker.
                return
            yield from self._available(busy).claimed(batch)

    def _stage(self) -> int:
        """Make due tasks available, if it is time for that."""
        if monotonic() < self._next_stage:
            self._some_available = True
            return 0
        self._staged_at, begun = self._clock(), monotonic()
        staged, self._some_available = stage_and_tell(limit=STAGED, now=self._staged_at, using=self.using)
        tell_poll(begun, Dispatched(staged=staged))
        self._next_stage = monotonic() + (0 if staged >= STAGED else STAGE_EVERY.total_seconds())
        return staged
