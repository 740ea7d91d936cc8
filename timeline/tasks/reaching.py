"""Reach the database: a message that comes while it is away waits for it, a while."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic, sleep
from typing import Final

from django.db import InterfaceError, OperationalError, connections

logger = logging.getLogger("timeline")

FIRST_PAUSE: Final = 0.1  # Seconds; each is twice as long as the one before it,
LONGEST_PAUSE: Final = 5.0  # but no longer than this.
PATIENCE: Final = 30.0  # Seconds in all, after which somebody else may have the message.
SLICE: Final = 0.2  # Seconds within which a worker that is told to stop notices.


def persist(act: Callable[[], None], *, using: str, stopping: Callable[[], bool]) -> bool:
    """
    Do something that begins no row twice; again, after growing pauses, while the database does not answer.

    Args:
        act: What to do.
        using: Database alias.
        stopping: Asked while it waits: whether to give up.

    Returns:
        Whether it was done. If not, the database stayed away, or the worker stops.
    """
    pause, give_up = FIRST_PAUSE, 0.0
    while True:
        begun = monotonic()
        try:
            act()
        except (OperationalError, InterfaceError) as error:
            if connections[using].in_atomic_block:
                raise  # Called by hand, in somebody's transaction.
            connections[using].close()
            if not give_up or monotonic() - begun > LONGEST_PAUSE:  # It was there in between.
                pause, give_up = FIRST_PAUSE, monotonic() + PATIENCE
            logger.warning("The database failed; a message waits for it: %s", error)
        else:
            return True
        if not _wait(pause, give_up, stopping):
            return False
        pause = min(2 * pause, LONGEST_PAUSE)


def _wait(seconds: float, give_up: float, stopping: Callable[[], bool]) -> bool:
    """Wait, unless it is time to give up."""
    until = monotonic() + seconds
    while not stopping() and until < give_up:
        if (left := until - monotonic()) <= 0:
            return True
        sleep(min(left, SLICE))
    return False
