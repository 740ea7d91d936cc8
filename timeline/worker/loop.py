"""The loop: rescue, stage, run, sleep until the next due row or one poll interval."""

from __future__ import annotations

import logging
import os
import socket
import threading
from datetime import datetime, timedelta
from time import monotonic

from django.db import DatabaseError, InterfaceError, connections

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.models import ScheduledTask
from timeline.operations.rescuing import rescue
from timeline.operations.running import Watch, run
from timeline.operations.staging import stage
from timeline.registry import registry
from timeline.worker.heartbeat import Heartbeat

logger = logging.getLogger("timeline")

BATCH = 100  # Ids read at a time; each task still runs in a group of its own.
RESCUE_EVERY = timedelta(seconds=10)


class Worker(Watch):
    """
    Polls and runs in this process until told to stop.

    Args:
        using: Database alias.
        name: Shown on the rows it runs; left out: host name and process id.
    """

    def __init__(self, using: str, name: str = "") -> None:
        self.using = using
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.ran = 0
        self._stop = threading.Event()
        self._heartbeat = Heartbeat(using)
        self._next_rescue = 0.0

    def stop(self) -> None:
        """Enter no further handler, and return from ``work`` when the present one is done. Safe in a signal handler."""
        self._stop.set()

    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stop.is_set()

    def entered(self, task: ScheduledTask) -> None:
        """Keep up the lease of what is being run."""
        self._heartbeat.hold(task)

    def left(self, task: ScheduledTask) -> None:
        """Let its lease go."""
        self._heartbeat.drop(task)

    def work(self) -> None:
        """Run what is due, sleep, and again. A database that does not answer is tried again after a poll interval."""
        self._heartbeat.start()
        try:
            while not self.stopping():
                try:
                    pause = timedelta(0) if self.poll() else self.pause(story_now(self.using))
                except (DatabaseError, InterfaceError) as error:
                    logger.warning("The database failed; trying again: %s", error)
                    connections[self.using].close()
                    pause = get_settings().POLL_INTERVAL
                self._stop.wait(pause.total_seconds())
        finally:
            self._heartbeat.stop()

    def poll(self) -> int:
        """Run one batch of what is due; say how many tasks it took on."""
        now = story_now(self.using)
        if monotonic() >= self._next_rescue:
            rescue(now=now, using=self.using)
            self._next_rescue = monotonic() + RESCUE_EVERY.total_seconds()
        stage(now=now, using=self.using)
        ready = ScheduledTask.objects.using(self.using).ready().with_handler(registry.task_keys())
        task_ids = list(ready.values_list("pk", flat=True)[:BATCH])
        for task_id in task_ids:
            if self.stopping():
                break
            self.ran += len(run(task_ids=[task_id], clock=self._clock, using=self.using, worker=self.name, watch=self))
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

    def _clock(self) -> datetime:
        return story_now(self.using)
