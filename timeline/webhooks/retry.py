"""Pace: when a delivery is tried again, when a paused endpoint is, and when one has failed for long enough. Pure rules."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from timeline.webhooks.models import Endpoint


# After the first failure, the second and so on; after those, the last one again: 15 tries within three days.
DELAYS: Final = tuple(timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 1800, 3600, 7200, 18_000, 36_000))
JITTER: Final = 0.1  # Of each delay, more or less.
FIRST_PROBE: Final = timedelta(seconds=5)
LONGEST_PROBE: Final = timedelta(minutes=10)
FAILED_FOR: Final = timedelta(days=5)
FAILED_OFTEN: Final = 20
ASKING: Final = frozenset({429, 503})  # Answers whose Retry-After is kept: too much, and not now.
LONGEST_WAIT: Final = timedelta(hours=12)  # However much longer a receiver asks for.
PAUSED_AFTER: Final = 5  # Failures in a row after which one delivery is sent at a time, to see whether it answers.


def retry_after(attempts: int, *, chance: float | None = None) -> timedelta:
    """How long after the failure of so many attempts the next try is. ``chance``: 0 to 1; left out: random."""
    delay = DELAYS[min(attempts, len(DELAYS)) - 1]
    chance = random.random() if chance is None else chance  # noqa: S311 (nobody gains by guessing it)
    return delay * (1 - JITTER + 2 * JITTER * chance)


def wait_asked_for(said: str, *, at: datetime) -> timedelta:
    """How long a ``Retry-After`` (seconds or a date) asks to be left alone: nothing if unreadable, ``LONGEST_WAIT`` at most."""
    if re.fullmatch(r"[0-9]+", said, re.ASCII):
        wait = timedelta(seconds=int(said.lstrip("0")[:9] or 0))
    else:
        try:
            until = parsedate_to_datetime(said)
            wait = (until if until.tzinfo else until.replace(tzinfo=UTC)) - at
        except (ValueError, TypeError, OverflowError):
            wait = timedelta()
    return min(max(wait, timedelta()), LONGEST_WAIT)


def probe_after(failures: int) -> timedelta:
    """How long after a failure a paused endpoint is tried again: 5 s, 10 s, … 10 min."""
    doublings = min(max(failures - PAUSED_AFTER, 0), 10)
    return min(FIRST_PROBE * float(2**doublings), LONGEST_PROBE)


def is_probe_due(endpoint: Endpoint, now: datetime) -> bool:
    """Whether a paused endpoint may be tried."""
    return endpoint.probe_at is None or endpoint.probe_at <= now


def is_given_up(failing_since: datetime | None, failures: int, now: datetime) -> bool:
    """Whether an endpoint has failed for long enough to be disabled."""
    return failing_since is not None and failures >= FAILED_OFTEN and now - failing_since >= FAILED_FOR
