"""Roll up: count the log into figures by the hour and into totals, each entry once; and read the figures."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import connections
from django.db.models import Q
from django.db.models.fields.json import KT

from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.lifecycle import FINAL, ReasonCode, State
from timeline.models import Figure, LogEntry, RollUp, Total
from timeline.models.task_records import REENTERED
from timeline.models.upkeep import Counts
from timeline.store.poll_queries import polling

# Seconds. A duration is in the first bucket whose bound it does not exceed; longer ones are in a last bucket without a bound.
# Rows contain these counts: changing the bounds would change the meaning of old rows.
BOUNDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)
SIZE: Final = len(BOUNDS) + 1

BATCH: Final = 5000
_COUNTS: Final = ("started", "completed", "failed", "discarded", "cancelled")
_BUCKETS: Final = ("lateness", "duration")
_IN_TOTALS: Final = ("reentered", "late_seconds", "taken_seconds")
_FAILURES: Final = frozenset({ReasonCode.ERROR, ReasonCode.TIMEOUT, ReasonCode.WORKER_LOST})
_BY_ITSELF: Final = frozenset({State.COMPLETED, State.RETRYABLE, State.DISCARDED})
AN_HOUR = timedelta(hours=1)


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
    Estimate the seconds that this share (0.95 for p95) of all durations does not exceed; None: nothing was counted.
    ``counts``: one for each bucket. Beyond the greatest bound, that is given.
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


@dataclass(slots=True)
class _Sums:
    started: int = 0
    completed: int = 0
    failed: int = 0
    discarded: int = 0
    cancelled: int = 0
    lateness: list[int] = field(default_factory=lambda: [0] * SIZE)
    duration: list[int] = field(default_factory=lambda: [0] * SIZE)
    reentered: int = 0
    late_seconds: float = 0.0
    taken_seconds: float = 0.0


def roll_up(*, size: int = BATCH, using: str) -> bool:
    """
    Count the next entries of the log into figures and totals; the first call counts none. Gives whether another call is worth
    while: not while another process counts, or a transaction of the last marking is open. The place is stored with the figures,
    so that even after a crash no entry counts twice. ``size``: numbers of entries at most.
    """
    with polling(using):
        rows = RollUp.objects.using(using)
        row = rows.select_for_update(skip_locked=True).filter(pk=1).first()
        if row is None and rows.exists():
            return False
        oldest, horizon, last = _open_transactions(using)
        if row is None:
            rows.bulk_create([RollUp(pk=1, counted=last, marked=last, horizon=horizon)], ignore_conflicts=True)
            return False
        if row.counted >= row.marked:
            if last > row.marked:
                rows.filter(pk=1).update(marked=last, horizon=horizon)
            return last > row.marked
        if row.horizon > horizon:  # The row is from another cluster, whose dump was restored here.
            rows.filter(pk=1).update(horizon=horizon)
            return False
        if row.horizon > oldest:
            return False
        entries = LogEntry.objects.using(using).filter(pk__gt=row.counted, pk__lte=row.marked).order_by("pk")
        first = entries.values_list(
            "pk", flat=True
        ).first()  # The numbers before it have no entries: these may be very many numbers.
        upto = row.marked if first is None else min(row.marked, first - 1 + size)
        sums = _summed(row.counted, upto, using)
        _add(sums, using)
        _add_to_totals(sums, using)
        is_left = upto < row.marked
        # What has come since is marked at once: a caller that comes each minute then counts each minute.
        mark = {"marked": last, "horizon": horizon} if not is_left and last > row.marked else {}
        rows.filter(pk=1).update(counted=upto, **mark)
        return is_left


def forget_figures(*, now: datetime, using: str) -> int:
    """Delete figures older than ``TIMELINE["FIGURES_RETENTION"]``; gives how many."""
    retention = get_settings().FIGURES_RETENTION
    if retention is None:
        return 0
    return Figure.objects.using(using).filter(hour__lt=now - retention).delete()[0]


def _open_transactions(using: str) -> tuple[int, int, int]:
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("transactions_open"))
        oldest, horizon, last = cursor.fetchone()
        return oldest, horizon, last


def _summed(after: int, upto: int, using: str) -> dict[tuple[datetime, str], _Sums]:
    """Sum up the entries with some numbers that say that a task started, or that an attempt or the task ended."""
    entries = LogEntry.objects.using(using).filter(pk__gt=after, pk__lte=upto)
    told = entries.filter(Q(to_state__in=[State.ACTIVE, *sorted(FINAL)]) | Q(from_state=State.ACTIVE))
    columns = ("at", "from_state", "to_state", "reason_code", "attempt", KT(f"detail__{REENTERED}"), "task__task_key")
    times = ("task__attempt", "task__scheduled_at", "task__started_at")
    sums: dict[tuple[datetime, str], _Sums] = defaultdict(_Sums)
    for at, source, target, code, attempt, again, key, latest, due, begun in told.values_list(*columns, *times):
        if source == target:
            continue
        hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        some = sums[hour, key]
        some.reentered += int(again or 0)
        if target == State.ACTIVE:
            some.started += 1
            if due <= at:  # Otherwise the attempt has ended since, and the row has the due time of the next one.
                some.lateness[bucket_of(at - due)] += 1
                some.late_seconds += (at - due).total_seconds()
        elif target in FINAL:
            setattr(some, target, getattr(some, target) + 1)
        elif target == State.RETRYABLE and code in _FAILURES:
            some.failed += 1
        if source == State.ACTIVE and target in _BY_ITSELF and begun is not None and attempt == latest:
            some.duration[bucket_of(at - begun)] += 1
            some.taken_seconds += max((at - begun).total_seconds(), 0.0)  # It is negative if a clock was set back.
    return sums


def _add(sums: dict[tuple[datetime, str], _Sums], using: str) -> None:
    """Add sums to the figures. Only the process that has locked the row of ``RollUp`` does this."""
    if not sums:
        return
    figures = Figure.objects.using(using)
    there = figures.filter(hour__in={hour for hour, _key in sums}, task_key__in={key for _hour, key in sums})
    known = {(figure.hour, figure.task_key): figure for figure in there}
    new = {at: Figure(hour=at[0], task_key=at[1]) for at in sums if at not in known}
    for at, some in sums.items():
        _raise(known.get(at) or new[at], some)
    figures.bulk_create(new.values())
    figures.bulk_update(_in(known, sums), [*_COUNTS, *_BUCKETS], batch_size=100)


def _add_to_totals(sums: dict[tuple[datetime, str], _Sums], using: str) -> None:
    """Add sums to the totals, in the same transaction, so that figures and totals count the same entries."""
    if not sums:
        return
    totals = Total.objects.using(using)
    known = {total.task_key: total for total in totals.filter(task_key__in={key for _hour, key in sums})}
    new: dict[str, Total] = {}
    for (_hour, key), some in sorted(sums.items(), key=lambda item: item[0]):
        total = known.get(key) or new.setdefault(key, Total(task_key=key))
        _raise(total, some)
        for name in _IN_TOTALS:
            setattr(total, name, getattr(total, name) + getattr(some, name))
    totals.bulk_create(new.values())
    totals.bulk_update(known.values(), [*_COUNTS, *_BUCKETS, *_IN_TOTALS], batch_size=100)


def _raise(counts: Counts, some: _Sums) -> None:
    for name in _COUNTS:
        setattr(counts, name, getattr(counts, name) + getattr(some, name))
    for name in _BUCKETS:
        setattr(counts, name, merged(getattr(counts, name), getattr(some, name)))


def _in(known: dict[tuple[datetime, str], Figure], sums: Iterable[Any]) -> list[Figure]:
    """The figures to which something is added. The query has found others of these hours and keys, too."""
    return [known[at] for at in sums if at in known]


@dataclass(slots=True)
class Span:
    """
    The figures of a span of time.

    Args:
        begins: Its beginning, in UTC.
        failed: Attempts that are tried again; the other counts are tasks that ended in this way.
        lateness: How late tasks started, a count for each bucket.
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
    """Read figures of all tasks, ``hours`` back with the present one. One statement, of as many rows as hours and kinds."""
    first = _first_of(hours, now)
    rows = Figure.objects.using(using).filter(hour__gte=first, hour__lt=first + hours * AN_HOUR)
    return [HourOfTask(*row) for row in rows.values_list(*HourOfTask._fields)]


def spans(rows: Iterable[HourOfTask], *, hours: int, width: int, task_key: str = "", now: datetime) -> list[Span]:
    """Sum up figures of hours (with the present one), the oldest first, in spans of ``width``, which divides them."""
    first = _first_of(hours, now)
    found = [Span(first + number * width * AN_HOUR) for number in range(hours // width)]
    for row in rows:
        if task_key in ("", row.task_key):
            span = found[(row.hour - first) // (width * AN_HOUR)]
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
