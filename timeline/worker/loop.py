"""The loop of a process that polls: one step, sleep until the next row is due or one poll interval, and again."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError, connections

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.exceptions import BrokerUnavailable
from timeline.models import ScheduledTask
from timeline.worker.names import worker_name

logger = logging.getLogger("timeline")


class Loop(ABC):
    """
    Polls in this process until told to stop.

    Args:
        using: Database alias.
        name: Of the process, as shown on rows and in the log; left out: host name and process id.
    """

    def __init__(self, using: str, name: str = "") -> None:
        self.using = using
        self.name = name or worker_name()
        self._stop = threading.Event()

    def stop(self) -> None:
        """Take on nothing more, and return from ``work`` when the present step is done. Safe in a signal handler."""
        self._stop.set()

    def work(self) -> None:
        """
        Step, sleep, and again. What does not answer, database or broker, is tried again after a poll interval.

        Raises:
            WrongSite: if the database is another site's.
        """
        while not self._stop.is_set():
            try:
                pause = self.step()
            except (DatabaseError, InterfaceError) as error:
                logger.warning("The database failed; trying again: %s", error)
                connections[self.using].close()
                pause = get_settings().POLL_INTERVAL
            except BrokerUnavailable as error:
                logger.warning("%s", error)
                pause = get_settings().POLL_INTERVAL
            self._stop.wait(pause.total_seconds())

    @abstractmethod
    def step(self) -> timedelta:
        """Poll once; say how long to sleep."""

    def pause(self, since: datetime) -> timedelta:
        """
        Say how long to sleep: until the next row is due, one poll interval at most.

        Args:
            since: Story time of the poll: what was due then has been seen to.
        """
        longest = get_settings().POLL_INTERVAL
        upcoming = ScheduledTask.objects.using(self.using).upcoming(since)
        first = upcoming.in_order().values_list("scheduled_at", flat=True).first()
        return longest if first is None else min(max(first - story_now(self.using), timedelta(0)), longest)
