"""Work beside tasks, a little at a time, in a process that polls: it sweeps, and counts figures by the hour."""

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
SHARE: Final = 50  # After a step comes a pause of so many times its length: steps take 2 % of the time.
REST: Final = 10.0  # Seconds between two checks whether a round is due; and before the first.


class Sweeper:
    """
    Sweeps and counts when it is called, if it is time for that.

    Args:
        using: Database alias.
    """

    def __init__(self, using: str) -> None:
        self._using = using
        self._next = monotonic() + REST

    def step(self, clock: Callable[[], datetime]) -> None:
        """Do the next part, if it is time for that. An error of the database ends this step, and stops no poll."""
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
