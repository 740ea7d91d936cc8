"""The embedded worker: rescue, stage, run. No broker between."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic
from typing import Final

from timeline.clocks import story_now
from timeline.models import ScheduledTask
from timeline.operations.identifying import sign_of_poller
from timeline.operations.rescuing import rescue
from timeline.operations.staging import stage
from timeline.registry import registry
from timeline.worker.batch import run_each
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.loop import Loop

BATCH: Final = 100  # Ids read at a time; each task still runs in a group of its own.
RESCUE_EVERY: Final = timedelta(seconds=10)


class Worker(Loop):
    """Polls and runs in this process until told to stop."""

    def __init__(self, using: str, name: str = "") -> None:
        super().__init__(using, name)
        self.ran = 0
        self._heartbeat = Heartbeat(using, self._stop.is_set)
        self._next_rescue = 0.0

    def work(self) -> None:
        """Keep up the leases of what is run, meanwhile."""
        with self._heartbeat:
            super().work()

    def step(self) -> timedelta:
        """Run one batch of what is due; sleep if there was none."""
        now = story_now(self.using)
        return timedelta(0) if self.poll() else self.pause(now)

    def poll(self) -> int:
        """Run one batch of what is due; say how many tasks it took on."""
        sign_of_poller(using=self.using)
        now = story_now(self.using)
        if monotonic() >= self._next_rescue:
            rescue(now=now, using=self.using)
            self._next_rescue = monotonic() + RESCUE_EVERY.total_seconds()
        stage(now=now, using=self.using)
        ready = ScheduledTask.objects.using(self.using).ready().with_handler(registry.task_keys())
        task_ids = list(ready.values_list("pk", flat=True)[:BATCH])
        self.ran += run_each(task_ids, watch=self._heartbeat, using=self.using, worker=self.name)
        return len(task_ids)
