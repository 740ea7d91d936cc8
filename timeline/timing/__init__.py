"""
When: ``after``, ``before``, ``at``, ``each_of`` and ``wait_for``, relative to an anchor. Pure rules.

Years, months, weeks and days are calendar units, counted on the wall clock of a time zone: 25 days later is the same
time of day, also across a clock change. Hours, minutes, seconds and any ``timedelta`` are exact durations.
"""

from timeline.timing.awaiting import wait_for
from timeline.timing.instants import (
    EARLIEST,
    LATEST,
    as_anchor_value,
    begins_at,
    check_range,
    check_time,
    day_of,
    in_utc,
)
from timeline.timing.offsets import Offset, offset_of
from timeline.timing.spreading import LONGEST_SPREAD, is_spread, share_of
from timeline.timing.whens import RUN_START, NamesTask, When, after, at, before, each_of

__all__ = [
    "EARLIEST",
    "LATEST",
    "LONGEST_SPREAD",
    "RUN_START",
    "NamesTask",
    "Offset",
    "When",
    "after",
    "as_anchor_value",
    "at",
    "before",
    "begins_at",
    "check_range",
    "check_time",
    "day_of",
    "each_of",
    "in_utc",
    "is_spread",
    "offset_of",
    "share_of",
    "wait_for",
]
