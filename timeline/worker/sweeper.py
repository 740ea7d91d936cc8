"""What a process that polls does beside its work, a little at a time: it sweeps, and counts figures by the hour."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from time import monotonic
from typing import Final

from django.db import DatabaseError, InterfaceError

from timeline.operations.rolling_up import forget_figures, roll_up
from timeline.operations.sweeping import sweep

logger = logging.getLogger("timeline")

SIZE: Final = 200  # Runs looked at in one step: some tens of milliseconds.
COUNTED: Final = 2000  # Entries of the log counted in one step.
SHARE: Final = 50  # A step is followed by so many times as long without one: two hundredths of the process's time.
REST: Final = 10.0  # Seconds until it is asked again whether a round is due; and before it is asked first.


class Sweeper:
    """
    Sweeps and counts when it is called, if it is time to.

    Args:
        using: Database alias.
    """

    def __init__(self, using: str) -> None:
        self._using = using
        self._next = monotonic() + REST

    def step(self, clock: Callable[[], datetime]) -> None:
        """Look at the next few, if it is time to. What the database refuses costs this step, and holds up no poll."""
        begun = monotonic()
        if begun < self._next:
            return
        wait = REST
        try:
            left = sweep(size=SIZE, now=clock(), using=self._using).left
            if roll_up(size=COUNTED, using=self._using) or left:
                wait = SHARE * (monotonic() - begun)
            else:
                forget_figures(now=clock(), using=self._using)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The sweep failed; it goes on in %g s: %s", REST, error)
        self._next = monotonic() + wait
