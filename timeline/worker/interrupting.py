"""Interrupt a handler that runs on the main thread of its process, and no other code."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

Answer = TypeVar("Answer")

# A signal that nobody sends: neither Celery nor hosts use it, and a process without a handler for it ignores it.
SIGNAL: Final = getattr(signal, "SIGURG", None)


class TimeIsUp(KeyboardInterrupt):
    """
    Raised in a handler, like a Ctrl-C: ``except Exception`` does not catch it, and psycopg cancels the query that it waits
    for.
    """


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
    Make a call that ``interrupt`` can break off. Only on the main thread.

    Only the called code is broken off: the signal has an effect only if the innermost frame is one of the call. This is not so
    before the call, nor after its return. The old handler of the signal is restored at the end.

    Args:
        act: The call.
        is_time_up: Tells whether to break it off; asked when the signal comes.

    Raises:
        TimeIsUp: if it is broken off.
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
