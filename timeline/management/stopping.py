"""Stop a loop by signal, cleanly."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from timeline.worker.loop import Loop


@contextmanager
def stopped_by_signals(loop: Loop) -> Iterator[None]:
    """Let SIGTERM and SIGINT stop the loop within the block, and do what they did before after it."""
    before = {number: signal.signal(number, lambda *_: loop.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
