"""The demo's story time: runs fast, and tells the same time in every process that is given the same setting."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from time import time


def now() -> datetime:
    """
    Tell story time from ``DEMO_CLOCK``: ``<start, seconds since 1970> <seconds of a story day>``.

    A story day passes in that many real seconds, counted from the real time given as start.
    """
    start, seconds_per_day = (float(part) for part in os.environ["DEMO_CLOCK"].split())
    return datetime.fromtimestamp(start, UTC) + timedelta(days=(time() - start) / seconds_per_day)
