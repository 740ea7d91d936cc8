"""A call that may take only so long: which attempts it is for, and how it is interrupted."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic

from timeline.engine.running import Attempt
from timeline.worker.interrupting import can_be_interrupted, interrupt


@dataclass(eq=False, slots=True)
class TimedCall:
    """
    A running handler, or a coroutine.

    Args:
        attempts: The attempts that it is for.
        undone: Attempts that share its transaction, which is undone if its time is up.
        cancel: Cancels a coroutine; None: it is a call.
        since: When it was entered, by ``monotonic()``.
        thread: The thread on which it runs.
        in_main: Whether it can be interrupted there.
        is_late: Whether its time is up. From then on its attempts have failed, even if it comes back.
        again_at: When it is interrupted once more, by ``monotonic()``, if it has not come back.
    """

    attempts: Sequence[Attempt]
    undone: Sequence[Attempt] = ()
    cancel: Callable[[], object] | None = None
    since: float = field(default_factory=monotonic)
    thread: threading.Thread = field(default_factory=threading.current_thread)
    in_main: bool = field(default_factory=can_be_interrupted)
    is_late: bool = False
    again_at: float = 0.0

    @property
    def timeout(self) -> timedelta:
        """How long it may take."""
        return self.attempts[0].declared.options.timeout or timedelta.max

    def is_up(self, now: float) -> bool:
        """Whether it has taken that long."""
        return now - self.since >= self.timeout.total_seconds()

    def stack(self) -> str:
        """Where a call hangs; empty for a coroutine, which has no frame on the thread while it waits."""
        frame = sys._current_frames().get(self.thread.ident or 0)
        return "" if self.cancel is not None or frame is None else "".join(traceback.format_stack(frame))

    def break_off(self, now: float) -> None:
        """
        Have a coroutine cancelled, or a handler on the main thread interrupted. If it catches that, this is repeated later.
        """
        self.again_at = now + 1
        if self.cancel is not None:
            self.cancel()
        elif self.in_main:
            interrupt()
