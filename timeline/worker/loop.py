"""The loop of a process that polls: one turn, sleep until something is due or announced, and again. And the sweeps."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Final

from django.db import DatabaseError, InterfaceError

from timeline.clocks import SteadyClock
from timeline.conf import get_settings
from timeline.dispatch.poll import Sender, dispatch
from timeline.exceptions import BrokerUnavailable
from timeline.hooks import hooks
from timeline.models import ScheduledTask
from timeline.store.database_errors import drop, drop_if_lost
from timeline.worker.listener import Alarm, Listener
from timeline.worker.process import worker_name

logger = logging.getLogger("timeline")

# Seconds from a wake-up to the next look. A process that announces often leaves out announcements within this time.
AGAIN: Final = 0.06

SHARE: Final = 50  # After a turn comes a pause of so many times its length: turns take 2 % of the time.
REST: Final = 10.0  # Seconds between two checks whether a round is due; and before the first.


class Loop(ABC):
    """Polls in this process until told to stop. ``name`` gets a suffix that makes it unique; empty: host and process id."""

    def __init__(self, using: str, name: str = "") -> None:
        self.using = using
        self.name = worker_name(name)
        self._clock = SteadyClock(using)
        self._alarm = Alarm()
        self._stop = threading.Event()  # No thread waits for it, so a signal handler may set it.
        self._next_round = 0.0

    def stop(self) -> None:
        """Begin nothing more, and return from ``work`` when the present turn is done. Safe in a signal handler."""
        self._stop.set()
        self._alarm.ring()

    def work(self) -> None:
        """
        Step, sleep, and again; if database or broker does not answer, try again after a poll interval.

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
        """Make a turn; give how many seconds to sleep, None if database or broker did not answer."""
        try:
            return self.turn().total_seconds()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The database failed; trying again: %s", error)
            drop(self.using)
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
    def turn(self) -> timedelta:
        """Poll once; give how long to sleep."""

    def is_round_due(self) -> bool:
        """Whether this poll is a whole one; polls after wake-ups leave out work that is needed only once in an interval."""
        if monotonic() < self._next_round:
            return False
        self._next_round = monotonic() + get_settings().POLL_INTERVAL.total_seconds() / 2
        return True

    def pause(self, since: datetime) -> timedelta:
        """How long to sleep: until the next row is due, one poll interval at most. Tasks due at ``since`` are done."""
        longest = get_settings().POLL_INTERVAL
        upcoming = ScheduledTask.objects.using(self.using).ahead(since)
        first = upcoming.in_order().values_list("scheduled_at", flat=True).first()
        return longest if first is None else min(max(first - self._clock(), timedelta(0)), longest)


class Sweeper:
    """Sweeps and counts when it is called, if it is time for that."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._is_new = True
        self._next = monotonic() + REST

    def turn(self, clock: Callable[[], datetime]) -> None:
        """Do the next part, if it is time for that; at first, remember where the rounds begin. An error stops no poll."""
        try:
            if self._is_new:
                self._is_new = False
                for wake in hooks().wakes:
                    wake(self._using)
            if monotonic() >= self._next:
                self._next = monotonic() + self._work(clock)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The sweep failed; it goes on in %g s: %s", REST, error)
            drop_if_lost(error, self._using)
            self._next = monotonic() + REST

    def _work(self, clock: Callable[[], datetime]) -> float:
        """Do the next part; how many seconds to pause after it."""
        begun = monotonic()
        left = [work(clock, self._using) for work in hooks().between]
        return SHARE * (monotonic() - begun) if any(left) else REST


class Poller(Loop):
    """Sends due tasks on their way, in this process, until told to stop."""

    def __init__(self, using: str, sender: Sender, name: str = "") -> None:
        super().__init__(using, name)
        self.sent = 0
        self._sender = sender
        self._sweeper = Sweeper(using)
        self._memory: dict[str, Any] = {}

    def turn(self) -> timedelta:
        """Dispatch; sleep until the next row is due, unless there is still something to do."""
        now = self._clock()
        whole = self.is_round_due()
        done = dispatch(sender=self._sender, wait=True, whole=whole, memory=self._memory, now=now, using=self.using)
        self.sent += done.sent + done.resent
        self._sweeper.turn(self._clock)
        return timedelta(0) if done.left else self.pause(now)
