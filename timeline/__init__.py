"""The future of any entity, kept as rows. Here is what a declaration needs; the verbs are in ``timeline.shortcuts``."""

from timeline.definition import (
    BACK,
    IGNORE,
    OPEN,
    OWNER,
    STAY,
    WORKING,
    Debounce,  # of debounce
    Limit,  # of limits
    Machine,
    Passage,
    Rate,  # of rates
    Retry,
    StepContext,
    Then,
    Timeline,
    after_run,
    ask,
    created,
    cron,
    daily,
    hourly,
    monthly,
    never,
    step,
    task,
    to,
    weekly,
)
from timeline.exceptions import (
    Cancel,
    Discard,
    RateLimited,  # of rates
    RetryAfter,
    TimelineError,
    TransitionNotAllowed,
)
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
    "Debounce",  # of debounce
    "Discard",
    "Limit",  # of limits
    "Machine",
    "Passage",
    "Rate",  # of rates
    "RateLimited",  # of rates
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
    "ask",
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
    "to",
    "wait_for",
    "weekly",
    "window",
]
