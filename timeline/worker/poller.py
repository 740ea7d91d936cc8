"""The poller: the same poll as beat's, as a process of its own, for sites without beat."""

from __future__ import annotations

from datetime import timedelta

from timeline.dispatch.dispatching import Sender, dispatch
from timeline.operations.recurring import Ahead
from timeline.worker.loop import Loop
from timeline.worker.sweeper import Sweeper


class Poller(Loop):
    """
    Sends due tasks on their way, in this process, until told to stop.

    Args:
        using: Database alias.
        sender: The way to the broker.
        name: Name of the process; left out: host name and process id.
    """

    def __init__(self, using: str, sender: Sender, name: str = "") -> None:
        super().__init__(using, name)
        self.sent = 0
        self._sender = sender
        self._sweeper = Sweeper(using)
        self._ahead = Ahead()

    def step(self) -> timedelta:
        """Dispatch; sleep until the next row is due, unless there is still something to do."""
        now = self._clock()
        whole = self.is_round_due()
        done = dispatch(sender=self._sender, wait=True, whole=whole, ahead=self._ahead, now=now, using=self.using)
        self.sent += done.sent + done.resent
        self._sweeper.step(self._clock)
        return timedelta(0) if done.left else self.pause(now)
