"""A call that may take only so long: which attempts it is for, and how it is interrupted."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from types import FrameType
from typing import Any, Final, TypeVar

from timeline.engine.groups import Attempt

Answer = TypeVar("Answer")

# A signal that nobody sends: neither Celery nor hosts use it, and a process without a handler for it ignores it.
SIGNAL: Final = getattr(signal, "SIGURG", None)


class TimeIsUp(KeyboardInterrupt):
    """Raised in a handler, like a Ctrl-C: ``except Exception`` misses it, and psycopg cancels the query that it waits for."""


def can_be_interrupted() -> bool:
    """Whether a call of this thread can be interrupted: signals are handled only on the main thread."""
    return SIGNAL is not None and threading.current_thread() is threading.main_thread()


def interrupt() -> None:
    """Break off the call of the main thread, if it is still running and its time is up."""
    main = threading.main_thread().ident
    if SIGNAL is not None and main is not None:
        signal.pthread_kill(main, SIGNAL)


def interruptibly(act: Callable[[], Answer], *, is_time_up: Callable[[], bool]) -> Answer:
    """
    Make a call that ``interrupt`` can break off, on the main thread; ``TimeIsUp`` if it is. The signal asks ``is_time_up``.

    The signal has an effect only while the innermost frame is one of the call: not before it, nor after its return. The old
    handler of the signal is restored at the end.
    """
    guard: list[FrameType] = []

    def handle(_number: int, frame: FrameType | None) -> None:
        if is_time_up() and _is_called_by(guard, frame):
            raise TimeIsUp

    def enter() -> Answer:
        guard.append(sys._getframe())
        return act()

    number: Any = SIGNAL
    before = signal.signal(number, handle)
    try:
        return enter()
    finally:
        signal.signal(number, before if before is not None else signal.SIG_DFL)
        guard.clear()


def _is_called_by(guard: list[FrameType], frame: FrameType | None) -> bool:
    """Whether this frame was called below the guard's frame, which still exists."""
    if not guard or frame is guard[0]:
        return False
    while frame is not None and frame is not guard[0]:
        frame = frame.f_back
    return frame is not None


@dataclass(eq=False, slots=True)
class TimedCall:
    """
    A running handler, or a coroutine.

    Args:
        undone: Attempts that share its transaction, which is undone if its time is up.
        cancel: Cancels a coroutine; None: it is a call.
        since: When it was entered, by ``monotonic()``.
        in_main: Whether it can be interrupted on its thread.
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
        """Cancel a coroutine, or interrupt a handler on the main thread; if it catches that, this is repeated later."""
        self.again_at = now + 1
        if self.cancel is not None:
            self.cancel()
        elif self.in_main:
            interrupt()
