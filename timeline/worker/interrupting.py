"""Interrupt: let a handler that runs on the main thread of its process be broken off, and nothing else."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

Answer = TypeVar("Answer")

# What nobody sends: neither Celery nor a host uses it, and whoever gets one without a handler for it does nothing.
SIGNAL: Final = getattr(signal, "SIGURG", None)


class TimeIsUp(KeyboardInterrupt):
    """
    Raised in a handler, like a Ctrl-C: ``except Exception`` does not keep it, and psycopg cancels the query it waits for.
    """


def can_be_interrupted() -> bool:
    """Whether what this thread calls can be: signals are handled on the main thread alone."""
    return SIGNAL is not None and threading.current_thread() is threading.main_thread()


def interrupt() -> None:
    """Break off what the main thread calls, if it still does, and its time is up."""
    main = threading.main_thread().ident
    if SIGNAL is not None and main is not None:
        signal.pthread_kill(main, SIGNAL)


def interruptibly(act: Callable[[], Answer], *, is_time_up: Callable[[], bool]) -> Answer:
    """
    Call something that ``interrupt`` can break off. On the main thread.

    It is broken off in its own code and nowhere else: only while a frame of what it calls is the innermost one, which is so
    neither before the call nor once it has returned. What the signal meant before is put back.

    Args:
        act: The call.
        is_time_up: Whether to break it off; asked when the signal comes.

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
    """Whether this frame is further in than the guard's, which is still there."""
    if not guard or frame is guard[0]:
        return False
    while frame is not None and frame is not guard[0]:
        frame = frame.f_back
    return frame is not None
