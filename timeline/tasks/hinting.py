"""Hint: let a poll come at once if a task is due now. No request waits for a hint, and nothing depends on it."""

from __future__ import annotations

import logging
import os
import threading
from time import monotonic, sleep
from typing import Any, Final

from celery import current_app

from timeline.conf import get_settings
from timeline.exceptions import BrokerUnavailable
from timeline.tasks.sending import CelerySender, poll_queue

logger = logging.getLogger("timeline")

GAP: Final = 0.05  # Seconds between hints: tasks that become due in this time share the next hint.
SILENCE: Final = 30.0  # Seconds without hints, after the broker did not take one.


class Hinter:
    """Sends polls from a thread of its own, so that the code that made a task due does not wait."""

    def __init__(self, sender: CelerySender) -> None:
        self._sender = sender
        self._due: set[str] = set()
        self._woken = threading.Condition()
        self._thread: threading.Thread | None = None
        self._owner = 0
        self._silent_until = 0.0

    def work_due(self, *, using: str, **_extra: Any) -> None:
        """Note that a task is due in this database. Receives ``timeline.signals.work_due``."""
        if monotonic() < self._silent_until or not has_broker():
            return
        if self._owner != os.getpid():  # Threads do not survive a fork, and a lock may have been held.
            self._woken, self._thread, self._owner = threading.Condition(), None, os.getpid()
        with self._woken:
            self._due.add(using)
            self._woken.notify()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._hint, name="timeline-hints", daemon=True)
                self._thread.start()

    def _hint(self) -> None:
        while True:
            with self._woken:
                self._woken.wait_for(lambda: self._due)
                due, self._due = self._due, set()
            try:
                for using in sorted(due) if has_broker() else ():
                    send_poll(self._sender, using)
            except BrokerUnavailable as error:
                self._silent_until = monotonic() + SILENCE
                logger.warning("No hints for %g s; polls go on by themselves. %s", SILENCE, error)
            sleep(GAP)


def send_poll(sender: CelerySender, using: str) -> None:
    """
    Send a poll, which is dropped if nobody takes it within an interval. Nothing is sent while another poll waits to be taken.

    Raises:
        BrokerUnavailable: within a few seconds.
    """
    expires = max(get_settings().POLL_INTERVAL.total_seconds(), 1.0)
    sender.publish("timeline.poll", {"using": using}, queue=poll_queue(), expires=expires, alone=True)


def has_broker() -> bool:
    """Whether this process has a Celery app with a broker: without one, its tasks run eagerly or not at all."""
    conf = current_app.conf
    return bool(conf.broker_write_url or conf.broker_url) and not conf.task_always_eager


hinter = Hinter(CelerySender())
