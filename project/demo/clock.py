"""The demo's story time: runs fast, and tells the same time in every process that is given the same setting."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from typing import Final

STANDING: Final = math.inf  # Seconds of a story day, where it stands still.


def now() -> datetime:
    """
    Tell story time from ``DEMO_CLOCK``: ``<start, seconds since 1970> <seconds of a story day> <what it begins at>``.

    A story day passes in that many real seconds, counted from the real time given as start. What it begins at is seconds since
    1970, too; left out, the start. Instead of all that, ``@`` and the path of a file that says it: that one can be set on.
    """
    said = os.environ["DEMO_CLOCK"]
    if said.startswith("@"):
        said = Path(said[1:]).read_text(encoding="ascii")
    start, seconds_per_day, *begin = (float(part) for part in said.split())
    return datetime.fromtimestamp(begin[0] if begin else start, UTC) + timedelta(
        days=(time() - start) / seconds_per_day
    )


def set_going(*, seconds_per_day: float, begin: datetime) -> None:
    """Let story time begin now, at that moment, for this process and those that it starts."""
    os.environ["DEMO_CLOCK"] = _said(seconds_per_day, begin)


def is_standing() -> bool:
    """Whether the clock was stopped."""
    clock = SettableClock.running()
    return clock is not None and clock.seconds_per_day == STANDING


class SettableClock:
    """
    Story time that runs, and can be set on, for this process and all that it starts from then on.

    Args:
        file: Where the time is kept; all these processes read it.
        seconds_per_day: Real seconds of a story day.
        begin: Story time now.
    """

    def __init__(self, file: Path, *, seconds_per_day: float, begin: datetime) -> None:
        self._file = file
        self._seconds_per_day = seconds_per_day
        self.set(begin)
        os.environ["DEMO_CLOCK"] = f"@{file}"

    @classmethod
    def running(cls) -> SettableClock | None:
        """The one that this process was told of; None: its clock cannot be set."""
        said = os.environ.get("DEMO_CLOCK", "")
        if not said.startswith("@"):
            return None
        clock = cls.__new__(cls)
        clock._file = Path(said[1:])
        clock._seconds_per_day = float(clock._file.read_text(encoding="ascii").split()[1])
        return clock

    @property
    def seconds_per_day(self) -> float:
        """How fast it runs, as of when this was made."""
        return self._seconds_per_day

    def set(self, moment: datetime) -> None:
        """Let it be that moment now; it goes on from there."""
        beside = self._file.with_suffix(".new")
        beside.write_text(_said(self._seconds_per_day, moment), encoding="ascii")
        beside.replace(self._file)  # At once: nobody reads half of it.

    def run_at(self, seconds_per_day: float) -> None:
        """Let it run faster or slower from now on; ``STANDING``: not at all."""
        if seconds_per_day != self._seconds_per_day:
            at = now()
            self._seconds_per_day = seconds_per_day
            self.set(at)


def _said(seconds_per_day: float, begin: datetime) -> str:
    return f"{time():.3f} {seconds_per_day:g} {begin.timestamp():.3f}"
