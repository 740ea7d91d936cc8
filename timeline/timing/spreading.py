"""Spread: tasks that would all be due at once become due one after the other, each at its own moment within a span."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Final

LONGEST_SPREAD: Final = timedelta(days=30)


def is_spread(spread: object) -> bool:
    """Whether tasks can be spread over this span: positive, 30 days at most."""
    return isinstance(spread, timedelta) and timedelta(0) < spread <= LONGEST_SPREAD


def share_of(spread: timedelta, *names: str) -> timedelta:
    """
    How much later a task is due: always the same for the same names, and spread evenly over many.

    Args:
        spread: The upper bound; every share is shorter.
        names: The texts that distinguish it from others.

    Returns:
        Zero or more, in whole milliseconds.
    """
    digest = hashlib.sha256("\x1f".join(names).encode(errors="replace")).digest()
    return timedelta(milliseconds=int.from_bytes(digest[:8]) * (spread // timedelta(milliseconds=1)) >> 64)
