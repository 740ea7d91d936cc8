"""``on``: counts from when a state of a machine is entered, until it is left."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from timeline.timing.offsets import read_offset
from timeline.timing.states import backoff_problems, state_problems
from timeline.timing.whens import When, when_in


def on(
    *states: str,
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    backoff: Any = None,
    spent: str = "",
) -> When:
    """
    In a state of a machine: the row is there exactly while the run is in that state, and is due at the entry, or later.

    Each entry into a state makes a new row. When the state is left, the row is cancelled (``state``) unless it has ended.

    Args:
        states: One state, or several.
        years, months, weeks, days: Whole calendar units after the entry.
        hours, minutes, seconds: Exact units.
        backoff: For a timer: a ``Retry``, instead of a distance. The timer comes later with each try.
        spent: The event that comes instead, at once, when ``max_attempts`` tries have been used.
    """
    offset, problems = read_offset(years, months, weeks, days, timedelta(0), hours, minutes, seconds)
    wrong = (*state_problems(states), *backoff_problems(backoff, spent, offset))
    return when_in(states, offset, (*problems, *wrong), backoff, spent)
