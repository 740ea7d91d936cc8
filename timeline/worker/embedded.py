"""The embedded worker: rescue, stage, run. No broker between."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from datetime import timedelta
from time import monotonic
from typing import Final

from timeline.conf import get_settings
from timeline.definition.checking import MAX_BULK
from timeline.models.kinds import ready_kinds
from timeline.operations.identifying import sign_of_poller
from timeline.operations.rescuing import rescue
from timeline.operations.running import run_ready
from timeline.operations.staging import stage
from timeline.planning import Share, shares
from timeline.registry import registry
from timeline.timing import EARLIEST
from timeline.worker.batch import group_size
from timeline.worker.hands import Hands
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.loop import Loop

RESCUE_EVERY: Final = timedelta(seconds=10)
STAGE_EVERY: Final = timedelta(milliseconds=100)  # While there is work; more often if there is more than fits.
STAGED: Final = 1000  # Tasks in one statement.


class Worker(Loop):
    """
    Polls and runs in this process until told to stop.

    Args:
        using: Database alias.
        name: Of the process; left out: host name and process id.
        threads: How many handlers are run at the same time. With one, it is the thread that polls.
    """

    def __init__(self, using: str, name: str = "", *, threads: int = 1) -> None:
        super().__init__(using, name)
        self.ran = 0
        self._counting = threading.Lock()
        self._heartbeat = Heartbeat(using, self._stop.is_set)
        self._hands: Hands | None = None
        if threads > 1:
            self._hands = Hands(threads, self._run_ready, using=using, stopping=self._stop.is_set, stop=self.stop)
        self._next_rescue = self._next_stage = 0.0
        self._staged_at = EARLIEST  # Story time up to which all that is due has been seen to.

    def work(self) -> None:
        """Keep up the leases of what is run, meanwhile."""
        with self._heartbeat, self._hands or nullcontext():
            super().work()

    def step(self) -> timedelta:
        """Run what is due, for a poll interval at most; sleep if there was nothing."""
        return timedelta(0) if self.poll() else self.pause(self._staged_at)

    def poll(self) -> int:
        """
        Run what is due, group by group, for a poll interval at most.

        Returns:
            How many tasks were taken on; where other threads run them, how many were found to be due.
        """
        give_up = monotonic() + get_settings().POLL_INTERVAL.total_seconds()
        if self.is_round_due():
            sign_of_poller(using=self.using)
        if monotonic() >= self._next_rescue:
            rescue(now=self._clock(), using=self.using)
            self._next_rescue = monotonic() + RESCUE_EVERY.total_seconds()
        self._next_stage = 0.0
        taken = 0
        while (last := self._round()) and monotonic() < give_up:
            taken += last
        self._heartbeat.pace.keep(using=self.using)
        return taken + last

    def _round(self) -> int:
        """Stage what is due, and run one group of each of the most urgent kinds, or let the hands run them."""
        staged = 0
        if monotonic() >= self._next_stage:
            self._staged_at = self._clock()
            staged = stage(limit=STAGED, now=self._staged_at, using=self.using)
            self._next_stage = monotonic() + (0 if staged == STAGED else STAGE_EVERY.total_seconds())
        if self._hands is None:
            return self._run_ready()
        self._hands.call()
        return staged

    def _run_ready(self) -> int:
        ready = ready_kinds(registry.task_keys(), using=self.using)
        urgency = {task_key: first.priority for task_key, first in ready.items()}
        taken = shares(urgency, dict.fromkeys(ready, ""), {}, most=MAX_BULK)
        return sum(self._run(share._replace(since=ready[share.task_key].due_at)) for share in taken)

    def _run(self, share: Share) -> int:
        if self._stop.is_set():
            return 0
        done = run_ready(
            task_key=share.task_key,
            priority=share.priority,
            since=share.since,
            most=min(share.size, group_size(share.task_key, self._heartbeat.pace)),
            clock=self._clock,
            using=self.using,
            worker=self.name,
            watch=self._heartbeat,
        )
        with self._counting:
            self.ran += len(done or ())
        return 0 if done is None else max(len(done), 1)
