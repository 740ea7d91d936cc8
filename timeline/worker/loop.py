"""The loop of a process that polls: one step, sleep until the next row is due or something is announced, and again."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from time import monotonic
from typing import Final

from django.db import DatabaseError, InterfaceError, connections

from timeline.clocks import SteadyClock
from timeline.conf import get_settings
from timeline.exceptions import BrokerUnavailable
from timeline.models import ScheduledTask
from timeline.worker.alarm import Alarm
from timeline.worker.listening import Listener
from timeline.worker.names import worker_name

logger = logging.getLogger("timeline")

# Seconds from a wake-up to the next look. A process that announces often leaves out announcements within this time.
AGAIN: Final = 0.06


class Loop(ABC):
    """
    Polls in this process until told to stop.

    Args:
        using: Database alias.
        name: Name of the process, as shown on rows and in the log; left out: host name and process id. A suffix makes it
            unique.
    """

    def __init__(self, using: str, name: str = "") -> None:
        self.using = using
        self.name = worker_name(name)
        self._clock = SteadyClock(using)
        self._alarm = Alarm()
        self._stop = threading.Event()  # No thread waits for it, so a signal handler may set it.
        self._next_round = 0.0

    def stop(self) -> None:
        """Begin nothing more, and return from ``work`` when the present step is done. Safe in a signal handler."""
        self._stop.set()
        self._alarm.ring()

    def work(self) -> None:
        """
        Step, sleep, and again. If database or broker does not answer, try again after a poll interval.

        Raises:
            NotRunHere: if the database is another site's, or its connection has autocommit off.
        """
        look_again = 0.0
        with Listener(self.using, self._alarm):
            while not self._stop.is_set():
                begun = monotonic()
                pause = self._try()
                if pause is None:
                    self._rest()
                    continue
                if begun < look_again:
                    pause = min(pause, look_again - monotonic())
                if self._alarm.sleep(pause):
                    look_again = monotonic() + AGAIN

    def _try(self) -> float | None:
        """Make a step; give how many seconds to sleep, None if database or broker did not answer."""
        try:
            return self.step().total_seconds()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The database failed; trying again: %s", error)
            connections[self.using].close()
        except BrokerUnavailable as error:
            logger.warning("%s", error)
        self._next_round = 0.0
        return None

    def _rest(self) -> None:
        """Sleep for a poll interval, even if something is announced."""
        give_up = monotonic() + get_settings().POLL_INTERVAL.total_seconds()
        while not self._stop.is_set() and (left := give_up - monotonic()) > 0:
            self._alarm.sleep(left)

    @abstractmethod
    def step(self) -> timedelta:
        """Poll once; give how long to sleep."""

    def is_round_due(self) -> bool:
        """
        Whether this poll is a whole one: it does the work that is needed only once in an interval, such as the sign of a
        poller.

        Polls after wake-ups, between two whole polls, leave this work out.
        """
        if monotonic() < self._next_round:
            return False
        self._next_round = monotonic() + get_settings().POLL_INTERVAL.total_seconds() / 2
        return True

    def pause(self, since: datetime) -> timedelta:
        """
        How long to sleep: until the next row is due, one poll interval at most.

        Args:
            since: Story time of the poll. Tasks that were due then are done.
        """
        longest = get_settings().POLL_INTERVAL
        upcoming = ScheduledTask.objects.using(self.using).upcoming(since)
        first = upcoming.in_order().values_list("scheduled_at", flat=True).first()
        return longest if first is None else min(max(first - self._clock(), timedelta(0)), longest)
