"""The future of any entity, kept as rows. Here is what a declaration needs; the verbs are in ``timeline.shortcuts``."""

from timeline.definition import (
    Retry,
    StepContext,
    Timeline,
    after_run,
    created,
    cron,
    daily,
    hourly,
    monthly,
    step,
    task,
    weekly,
)
from timeline.exceptions import Cancel, Discard, RetryAfter, TimelineError
from timeline.timing import after, at, before, each_of, wait_for

__version__ = "0.2.0.dev0"

__all__ = [
    "Cancel",
    "Discard",
    "Retry",
    "RetryAfter",
    "StepContext",
    "Timeline",
    "TimelineError",
    "after",
    "after_run",
    "at",
    "before",
    "created",
    "cron",
    "daily",
    "each_of",
    "hourly",
    "monthly",
    "step",
    "task",
    "wait_for",
    "weekly",
]
