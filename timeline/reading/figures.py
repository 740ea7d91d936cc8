"""Figures by the hour, for pages and meters: summed up over tasks, with quantiles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from timeline.models import Figure
from timeline.timing.buckets import SIZE, merged, quantile

AN_HOUR = timedelta(hours=1)


@dataclass(slots=True)
class Span:
    """
    The figures of a span of time.

    Args:
        begins: Its beginning, in UTC.
        completed, failed, discarded, cancelled: Tasks that ended in this way; ``failed``: attempts that are tried again.
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
        """Half of the tasks started at most so many seconds late; None: none started."""
        return quantile(self.lateness, 0.5)

    @property
    def late_p95(self) -> float | None:
        """Nineteen of twenty tasks started at most so many seconds late."""
        return quantile(self.lateness, 0.95)

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened in the span."""
        return not (self.completed or self.failed or self.discarded or self.cancelled or any(self.lateness))


class HourOfTask(NamedTuple):
    """Figures of one task and hour, as the table has them."""

    hour: datetime
    task_key: str
    completed: int
    failed: int
    discarded: int
    cancelled: int
    lateness: Sequence[int]


def figures(*, hours: int, now: datetime, using: str) -> list[HourOfTask]:
    """
    Read figures of all tasks. One statement, of as many rows as hours and kinds of tasks.

    Args:
        hours: How far back, including the present hour.
        now: Story time.
        using: Database alias.
    """
    first = _first_of(hours, now)
    rows = Figure.objects.using(using).filter(hour__gte=first, hour__lt=first + hours * AN_HOUR)
    return [HourOfTask(*row) for row in rows.values_list(*HourOfTask._fields)]


def spans(rows: Iterable[HourOfTask], *, hours: int, step: int, task_key: str = "", now: datetime) -> list[Span]:
    """
    Sum up figures, the oldest first.

    Args:
        rows: The figures, of these hours.
        hours: How far back, including the present hour.
        step: Hours of a span; a divisor of ``hours``.
        task_key: Only this kind; empty: all.
        now: Story time.
    """
    first = _first_of(hours, now)
    found = [Span(first + number * step * AN_HOUR) for number in range(hours // step)]
    for row in rows:
        if task_key in ("", row.task_key):
            span = found[(row.hour - first) // (step * AN_HOUR)]
            span.completed += row.completed
            span.failed += row.failed
            span.discarded += row.discarded
            span.cancelled += row.cancelled
            span.lateness = merged(span.lateness, row.lateness)
    return found


def busiest(rows: Iterable[HourOfTask], *, most: int) -> list[tuple[str, int, int]]:
    """The kinds of task with the most completions in these figures: key, completed, failed or discarded."""
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        sums[row.task_key][0] += row.completed
        sums[row.task_key][1] += row.failed + row.discarded
    ordered = sorted(sums.items(), key=lambda item: (-sum(item[1]), item[0]))
    return [(key, good, bad) for key, (good, bad) in ordered[:most]]


def _first_of(hours: int, now: datetime) -> datetime:
    """The beginning of the first of ``hours`` hours. The last of them is the present hour."""
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) - (hours - 1) * AN_HOUR
