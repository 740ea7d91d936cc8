"""The demo's story time: runs fast, and tells the same time in every process that is given the same setting."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from time import time


def now() -> datetime:
    """
    Tell story time from ``DEMO_CLOCK``: ``<start, seconds since 1970> <seconds of a story day> <what the story begins at>``.

    A story day passes in that many real seconds, counted from the real time given as start. What the story begins at is seconds
    since 1970, too; left out, the start.
    """
    start, seconds_per_day, *begin = (float(part) for part in os.environ["DEMO_CLOCK"].split())
    return datetime.fromtimestamp(begin[0] if begin else start, UTC) + timedelta(
        days=(time() - start) / seconds_per_day
    )


def set_going(*, seconds_per_day: float, begin: datetime) -> None:
    """Let story time begin now, at that moment, for this process and those that it starts."""
    os.environ["DEMO_CLOCK"] = f"{time():.3f} {seconds_per_day:g} {begin.timestamp():.3f}"
