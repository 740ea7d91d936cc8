"""
When: a time relative to an anchor. Pure rules.

Years, months, weeks and days are counted on the wall clock of a zone: 25 days later is the same time of day, also across a
clock change. Hours, minutes, seconds and any ``timedelta`` are exact durations.
"""

from timeline.features.waits.times import approval, wait_for
from timeline.timing.offsets import (
    EARLIEST,
    LATEST,
    Distances,
    Offset,
    as_anchor_value,
    check_range,
    check_time,
    day_of,
    distances_of_days,
    distances_of_moments,
    offset_of,
)
from timeline.timing.repeats import LONGEST_SPREAD, Repeat, is_spread, share_of
from timeline.timing.states import OF_STATE, Backoff, anchor_of, states_in, told_states
from timeline.timing.whens import RUN_START, Approval, NamesTask, When, after, at, before, each_of, every, on
from timeline.timing.windows import Window, window
from timeline.told_times import in_utc, told_time

__all__ = [
    "EARLIEST",
    "LATEST",
    "LONGEST_SPREAD",
    "OF_STATE",
    "RUN_START",
    "Approval",
    "Backoff",
    "Distances",
    "NamesTask",
    "Offset",
    "Repeat",
    "When",
    "Window",
    "after",
    "anchor_of",
    "approval",
    "as_anchor_value",
    "at",
    "before",
    "check_range",
    "check_time",
    "day_of",
    "distances_of_days",
    "distances_of_moments",
    "each_of",
    "every",
    "in_utc",
    "is_spread",
    "offset_of",
    "on",
    "share_of",
    "states_in",
    "told_states",
    "told_time",
    "wait_for",
    "window",
]
