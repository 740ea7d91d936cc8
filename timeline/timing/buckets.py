"""Lengths of time counted in buckets: small counts that can be added up, and that quantiles are told from. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

# Seconds. A length is in the first bucket whose bound it does not pass; one that passes all is in a last one without a bound.
# They stand in rows: to change them makes old rows mean something else.
BOUNDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)
SIZE: Final = len(BOUNDS) + 1


def bucket_of(length: timedelta) -> int:
    """Give the number of the bucket; what is negative, as after a clock was set back, is in the first."""
    return bisect_left(BOUNDS, length.total_seconds())


def merged(some: Sequence[int], others: Sequence[int]) -> list[int]:
    """Add up the counts of two, bucket by bucket. An empty one counts as nothing."""
    return [
        (some[at] if at < len(some) else 0) + (others[at] if at < len(others) else 0)
        for at in range(max(SIZE, len(some), len(others)))
    ]


def quantile(counts: Sequence[int], share: float) -> float | None:
    """
    Tell the length that so many are within, as seconds: an estimate, even within a bucket.

    Args:
        counts: One for each bucket.
        share: From 0 to 1: 0.95 for p95.

    Returns:
        None where nothing was counted; the greatest bound where it lies beyond that.
    """
    total = sum(counts)
    if not total:
        return None
    wanted, before = share * total, 0
    for at, count in enumerate(counts[: len(BOUNDS)]):
        if count and before + count >= wanted:
            low = BOUNDS[at - 1] if at else 0.0
            return low + (BOUNDS[at] - low) * (wanted - before) / count
        before += count
    return BOUNDS[-1]
