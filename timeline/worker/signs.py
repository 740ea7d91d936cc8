"""Signs that this process is alive: one every few seconds, for all its threads together."""

from __future__ import annotations

from time import monotonic
from typing import Final

from timeline.conf import get_settings
from timeline.dispatch.signing import give_sign

NEVER: Final = float("-inf")

_given: dict[tuple[str, str], float] = {}  # Worker and database → last sign. A forked process has another name.


def seconds_left(worker: str, *, using: str) -> float:
    """How long there is until the next sign of this worker; 0 if it is time."""
    key = worker, using
    next_at = _given.get(key, NEVER) + get_settings().sign_every.total_seconds()
    return max(next_at - monotonic(), 0.0)


def keep_giving(worker: str, *, using: str) -> None:
    """
    Give a sign if it is time. Call this before anything is begun, and wherever leases are extended.

    Args:
        worker: Name of the worker, as on the rows; empty: nobody looks for its signs.
        using: Database alias.
    """
    if not worker or seconds_left(worker, using=using):
        return
    before, _given[worker, using] = _given.get((worker, using), NEVER), monotonic()
    try:
        give_sign(worker, using=using)
    except BaseException:
        _given[worker, using] = before
        raise
