"""Durations counted in buckets: small counts that can be added up, and from which quantiles are estimated. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

# Seconds. A duration is in the first bucket whose bound it does not exceed; longer ones are in a last bucket without a bound.
# Rows contain these counts: changing the bounds would change the meaning of old rows.
BOUNDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)
SIZE: Final = len(BOUNDS) + 1


def bucket_of(length: timedelta) -> int:
    """Give the number of the bucket; a negative duration, as after a clock was set back, is in the first."""
    return bisect_left(BOUNDS, length.total_seconds())


def merged(some: Sequence[int], others: Sequence[int]) -> list[int]:
    """Add up two lists of counts, bucket by bucket. An empty list counts as zeros."""
    return [
        (some[at] if at < len(some) else 0) + (others[at] if at < len(others) else 0)
        for at in range(max(SIZE, len(some), len(others)))
    ]


def quantile(counts: Sequence[int], share: float) -> float | None:
    """
    Estimate, in seconds, the duration that this share of all durations does not exceed.

    Args:
        counts: One count for each bucket.
        share: From 0 to 1: 0.95 for p95.

    Returns:
        None if nothing was counted; the greatest bound if the quantile is beyond it.
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
