"""The future of any entity, kept as rows. Here is what a declaration needs; the verbs are in ``timeline.shortcuts``."""

from timeline.definition import (
    BACK,
    IGNORE,
    OPEN,
    OWNER,
    STAY,
    WORKING,
    Limit,  # of limits
    Machine,
    Retry,
    StepContext,
    Then,
    Timeline,
    after_run,
    created,
    cron,
    daily,
    hourly,
    monthly,
    never,
    step,
    task,
    weekly,
)
from timeline.exceptions import Cancel, Discard, RetryAfter, TimelineError, TransitionNotAllowed
from timeline.timing import after, approval, at, before, each_of, every, on, wait_for, window

__version__ = "0.2.0"

__all__ = [
    "BACK",
    "IGNORE",
    "OPEN",
    "OWNER",
    "STAY",
    "WORKING",
    "Cancel",
    "Discard",
    "Limit",  # of limits
    "Machine",
    "Retry",
    "RetryAfter",
    "StepContext",
    "Then",
    "Timeline",
    "TimelineError",
    "TransitionNotAllowed",
    "after",
    "after_run",
    "approval",
    "at",
    "before",
    "created",
    "cron",
    "daily",
    "each_of",
    "every",
    "hourly",
    "monthly",
    "never",
    "on",
    "step",
    "task",
    "wait_for",
    "weekly",
    "window",
]
