"""The loop: rescue, stage, run, sleep until the next due row or one poll interval."""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta
from time import monotonic

from django.db import DatabaseError, InterfaceError, connections

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.models import ScheduledTask
from timeline.operations.rescuing import rescue
from timeline.operations.staging import stage
from timeline.registry import registry
from timeline.worker.batch import run_each
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.names import worker_name

logger = logging.getLogger("timeline")

BATCH = 100  # Ids read at a time; each task still runs in a group of its own.
RESCUE_EVERY = timedelta(seconds=10)


class Worker:
    """
    Polls and runs in this process until told to stop.

    Args:
        using: Database alias.
        name: Shown on the rows it runs; left out: host name and process id.
    """

    def __init__(self, using: str, name: str = "") -> None:
        self.using = using
        self.name = name or worker_name()
        self.ran = 0
        self._stop = threading.Event()
        self._heartbeat = Heartbeat(using, self._stop.is_set)
        self._next_rescue = 0.0

    def stop(self) -> None:
        """Enter no further handler, and return from ``work`` when the present one is done. Safe in a signal handler."""
        self._stop.set()

    def work(self) -> None:
        """Run what is due, sleep, and again. A database that does not answer is tried again after a poll interval."""
        with self._heartbeat:
            while not self._stop.is_set():
                try:
                    pause = timedelta(0) if self.poll() else self.pause(story_now(self.using))
                except (DatabaseError, InterfaceError) as error:
                    logger.warning("The database failed; trying again: %s", error)
                    connections[self.using].close()
                    pause = get_settings().POLL_INTERVAL
                self._stop.wait(pause.total_seconds())

    def poll(self) -> int:
        """Run one batch of what is due; say how many tasks it took on."""
        now = story_now(self.using)
        if monotonic() >= self._next_rescue:
            rescue(now=now, using=self.using)
            self._next_rescue = monotonic() + RESCUE_EVERY.total_seconds()
        stage(now=now, using=self.using)
        ready = ScheduledTask.objects.using(self.using).ready().with_handler(registry.task_keys())
        task_ids = list(ready.values_list("pk", flat=True)[:BATCH])
        self.ran += run_each(task_ids, watch=self._heartbeat, using=self.using, worker=self.name)
        return len(task_ids)

    def pause(self, now: datetime) -> timedelta:
        """Say how long to sleep: until the next row is due, one poll interval at most."""
        longest = get_settings().POLL_INTERVAL
        first = (
            ScheduledTask.objects.using(self.using)
            .upcoming(now)
            .in_order()
            .values_list("scheduled_at", flat=True)
            .first()
        )
        return longest if first is None else min(max(first - now, timedelta(0)), longest)
