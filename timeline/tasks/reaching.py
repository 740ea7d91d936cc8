"""Reach the database: a message waits for a while if the database does not answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic, sleep
from typing import Final

from django.db import InterfaceError, OperationalError, connections

logger = logging.getLogger("timeline")

FIRST_PAUSE: Final = 0.1  # Seconds of the first pause; each later pause is twice as long,
LONGEST_PAUSE: Final = 5.0  # but no longer than this.
PATIENCE: Final = 30.0  # Seconds in all. Then the message goes back, and another worker may have it.
SLICE: Final = 0.2  # Seconds of one sleep: a worker that is told to stop notices it after so long.


def persist(act: Callable[[], None], *, using: str, stopping: Callable[[], bool]) -> bool:
    """
    Make a call, and repeat it after growing pauses while the database does not answer. Repeating must be safe: the call must
    not begin a row twice.

    Args:
        act: The call.
        using: Database alias.
        stopping: Tells, while this waits, whether to give up.

    Returns:
        Whether the call was made. If not, the database stayed away, or the worker stops.
    """
    pause, give_up = FIRST_PAUSE, 0.0
    while True:
        begun = monotonic()
        try:
            act()
        except (OperationalError, InterfaceError) as error:
            if connections[using].in_atomic_block:
                raise  # It is called by hand, in a transaction of the caller.
            connections[using].close()
            if not give_up or monotonic() - begun > LONGEST_PAUSE:  # The database was there in between.
                pause, give_up = FIRST_PAUSE, monotonic() + PATIENCE
            logger.warning("The database failed; a message waits for it: %s", error)
        else:
            return True
        if not _wait(pause, give_up, stopping):
            return False
        pause = min(2 * pause, LONGEST_PAUSE)


def _wait(seconds: float, give_up: float, stopping: Callable[[], bool]) -> bool:
    """Wait; False: it is time to give up."""
    until = monotonic() + seconds
    while not stopping() and until < give_up:
        if (left := until - monotonic()) <= 0:
            return True
        sleep(min(left, SLICE))
    return False
