"""Of an attempt: what a handler raises to say how its task ends, and what it is told."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from timeline.exceptions.base import TimelineError

if TYPE_CHECKING:
    from timeline.lifecycle import Reason


class LeaseLost(TimelineError):
    """The attempt is no longer its worker's: cancelled, or given up for dead. What it wrote is rolled back."""

    message = "attempt %(attempt)s of task %(task)s is not ours any more; its outcome was not recorded."

    def __init__(self, task: object, attempt: int) -> None:
        self.task = task
        self.attempt = attempt


class TimedOut(LeaseLost):
    """Its handler has taken longer than its ``timeout``: the attempt has failed. What it wrote is rolled back."""

    message = "attempt %(attempt)s of task %(task)s took longer than %(timeout)s; what its handler comes back with is dropped."

    def __init__(self, task: object, attempt: int, timeout: timedelta) -> None:
        super().__init__(task, attempt)
        self.timeout = timeout


class WorkerLost(LeaseLost):
    """
    The last worker that a task may lose is gone with it. Nobody raises it: ``errors`` of a machine may name it, to say which
    event that means.
    """

    message = "attempt %(attempt)s of task %(task)s was lost with its worker, and is the last."


class Rest(BaseException):
    """
    Raised by a step where the task has to wait for somebody's decision. The attempt ends, and that is no failure.

    It is no ``Exception``, so that a handler which catches errors does not catch it by mistake. If one does, the next
    step raises it again, and so does the end of the handler.
    """

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
        super().__init__(reason.text)


class HandlerSignal(TimelineError):
    """What a handler raises to choose its ending. Let it pass: do not catch it in the handler."""


class Cancel(HandlerSignal):
    """Raised by a handler: what it was to do is no longer wanted. The task ends cancelled, with this text."""

    def __init__(self, reason: str) -> None:
        self.reason = str(reason)
        super().__init__(self.reason)


class Discard(HandlerSignal):
    """Raised by a handler: the error is permanent. The task ends discarded, with this text, without a retry."""

    def __init__(self, reason: str) -> None:
        self.reason = str(reason)
        super().__init__(self.reason)


class RetryAfter(HandlerSignal):
    """
    Raised by a handler: try again after a delay. Counts against the retry budget.

    Args:
        delay: From now; not negative, ten years at most.
        reason: Kept in the log.

    Raises:
        ValueError: if ``delay`` is something else.
    """

    def __init__(self, delay: timedelta, reason: str = "") -> None:
        if not isinstance(delay, timedelta) or not timedelta(0) <= delay <= timedelta(days=3653):
            raise ValueError(f"RetryAfter({delay!r}): give a timedelta from 0 to ten years.")
        self.delay = delay
        self.reason = str(reason) or f"asked to be retried in {delay}"
        super().__init__(self.reason)
