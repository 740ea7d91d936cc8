"""Figures by the hour, as pages and meters read them: summed up over tasks, with quantiles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from timeline.models import Figure
from timeline.timing.buckets import SIZE, merged, quantile

AN_HOUR = timedelta(hours=1)


@dataclass(slots=True)
class Span:
    """
    What became of tasks in a span of time.

    Args:
        begins: Its beginning, in UTC.
        completed, failed, discarded, cancelled: Tasks that ended so; of ``failed``, attempts that are tried again.
        lateness: How late tasks started, by ``timeline.timing.buckets``.
    """

    begins: datetime
    completed: int = 0
    failed: int = 0
    discarded: int = 0
    cancelled: int = 0
    lateness: Sequence[int] = field(default_factory=lambda: [0] * SIZE)

    @property
    def late_p50(self) -> float | None:
        """Seconds that half of the tasks started late at most; None: none started."""
        return quantile(self.lateness, 0.5)

    @property
    def late_p95(self) -> float | None:
        """The same of nineteen in twenty."""
        return quantile(self.lateness, 0.95)

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened in it."""
        return not (self.completed or self.failed or self.discarded or self.cancelled or any(self.lateness))


def spans(*, hours: int, step: int, task_key: str = "", now: datetime, using: str) -> list[Span]:
    """
    Sum up figures, the oldest first. One statement, of as many rows as hours and kinds of tasks.

    Args:
        hours: How far back, up to the hour that is under way.
        step: Hours of a span.
        task_key: Of one task; empty: of all.
        now: Story time.
        using: Database alias.
    """
    count, first = hours // step, _first_of(hours // step * step, now)
    rows = Figure.objects.using(using).filter(hour__gte=first, hour__lt=first + count * step * AN_HOUR)
    if task_key:
        rows = rows.filter(task_key=task_key)
    found = [Span(first + number * step * AN_HOUR) for number in range(count)]
    columns = ("hour", "completed", "failed", "discarded", "cancelled", "lateness")
    for hour, *counts, lateness in rows.values_list(*columns):
        span = found[(hour - first) // (step * AN_HOUR)]
        for name, number in zip(columns[1:5], counts, strict=True):
            setattr(span, name, getattr(span, name) + number)
        span.lateness = merged(span.lateness, lateness)
    return found


def busiest(*, hours: int, most: int, now: datetime, using: str) -> list[tuple[str, int, int]]:
    """Tasks of which most completed in the last hours: key, completed, failed or discarded."""
    since = _first_of(hours, now)
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    rows: Iterable[tuple[str, int, int, int]] = (
        Figure.objects.using(using).filter(hour__gte=since).values_list("task_key", "completed", "failed", "discarded")
    )
    for key, completed, failed, discarded in rows:
        sums[key][0] += completed
        sums[key][1] += failed + discarded
    ordered = sorted(sums.items(), key=lambda item: (-sum(item[1]), item[0]))
    return [(key, good, bad) for key, (good, bad) in ordered[:most]]


def _first_of(hours: int, now: datetime) -> datetime:
    """The beginning of the first of so many hours, of which the last is under way."""
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) - (hours - 1) * AN_HOUR
