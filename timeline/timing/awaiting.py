"""``wait_for``: the first of some events, or so long after the run's start."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

from timeline.timing.offsets import Offset, Problem
from timeline.timing.whens import RUN_START, When

MAX_EVENT: Final = 100
MAX_EVENTS: Final = 500  # Characters of all names together, a blank between each two.
MAX_KEY: Final = 200
LONGEST_WAIT: Final = timedelta(days=3660)


def wait_for(*events: str, within: timedelta, key: str = "") -> When:
    """
    When the first of these events comes to the entity, at the latest so long after the run's start.

    ``self.awaited`` is the event; None, if the time ran out. The event that started the run does not count.

    Args:
        events: Names, as they are emitted.
        within: Exact duration.
        key: Of the event; left out: whichever it has.
    """
    problems = tuple(_problems(events, within, key))
    if problems:
        return When("after", RUN_START, Offset(), None, problems)
    return replace(When("after", RUN_START, Offset(exact=within)), awaits=events, awaits_key=key)


def _problems(events: tuple[object, ...], within: object, key: object) -> Iterator[Problem]:
    names = [event for event in events if isinstance(event, str) and 0 < len(event) <= MAX_EVENT]
    is_known = len(names) == len(set(events)) == len(events) and not any(re.search(r"\s|\0", name) for name in names)
    if not names or not is_known or len(" ".join(names)) > MAX_EVENTS:
        yield (
            f"waits for {events!a:.60}.",
            f"Name one event or several, each once, {MAX_EVENTS} characters together at most.",
        )
    if not isinstance(within, timedelta) or not timedelta(0) < within <= LONGEST_WAIT:
        yield f"waits within {within!a:.60}.", f"Give a timedelta of up to {LONGEST_WAIT.days} days."
    if not isinstance(key, str) or len(key) > MAX_KEY or "\0" in key:
        yield f"waits for the key {key!a:.60}.", f"Give text of at most {MAX_KEY} characters."
