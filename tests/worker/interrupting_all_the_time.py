"""
``python -m tests.worker.interrupting_all_the_time``: calls that are interrupted all the time; it says how they ended.

A program of its own: the interrupt also comes while coverage holds its lock, which would then never be let go.
"""

from __future__ import annotations

import signal
import threading

import django

django.setup()

from timeline.worker.timed_call import SIGNAL, TimeIsUp, interrupt, interruptibly  # noqa: E402 (needs the settings)

CALLS = 3000  # At least, and as many as it takes to break off this many:
BROKEN_OFF = 20
outcomes: set[str] = set()


def send(stop: threading.Event) -> None:
    """Interrupt all the time."""
    while not stop.wait(0.0001):
        interrupt()


def body() -> None:
    """Take a moment."""
    try:
        for _ in range(300):
            pass
    except TimeIsUp:
        outcomes.add("inside")
        raise


def main() -> None:
    """Call, and see after each call that the signal means again what it meant before."""
    stop, before = threading.Event(), signal.getsignal(SIGNAL)
    sender = threading.Thread(target=send, args=[stop])
    sender.start()
    calls = broken_off = 0
    while calls < CALLS or broken_off < BROKEN_OFF:
        calls += 1
        try:
            interruptibly(body, is_time_up=lambda: True)
        except TimeIsUp:
            broken_off += 1
            outcomes.add("raised")
        if signal.getsignal(SIGNAL) != before:
            outcomes.add("not put back")
    stop.set()
    sender.join()


if __name__ == "__main__":
    main()
    print(*sorted(outcomes))
