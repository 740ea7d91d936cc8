"""Roll up: count the log into figures by the hour and into totals, each entry once. Several processes may do so at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from django.db import connections
from django.db.models import Q

from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.lifecycle import FINAL, ReasonCode, State
from timeline.models import Figure, LogEntry, RollUp, Total
from timeline.models.figure import Counts
from timeline.store.polling import polling
from timeline.timing.buckets import SIZE, bucket_of, merged

BATCH: Final = 5000
_COUNTS: Final = ("started", "completed", "failed", "discarded", "cancelled")
_BUCKETS: Final = ("lateness", "duration")
_SECONDS: Final = ("late_seconds", "taken_seconds")
_FAILURES: Final = frozenset({ReasonCode.ERROR, ReasonCode.TIMEOUT, ReasonCode.WORKER_LOST})
_BY_ITSELF: Final = frozenset({State.COMPLETED, State.RETRYABLE, State.DISCARDED})


@dataclass(slots=True)
class _Sums:
    started: int = 0
    completed: int = 0
    failed: int = 0
    discarded: int = 0
    cancelled: int = 0
    lateness: list[int] = field(default_factory=lambda: [0] * SIZE)
    duration: list[int] = field(default_factory=lambda: [0] * SIZE)
    late_seconds: float = 0.0
    taken_seconds: float = 0.0


def roll_up(*, size: int = BATCH, using: str) -> bool:
    """
    Count the next entries of the log into figures and totals. The first call counts none: figures and totals begin with the
    entries that are logged after it.

    The place in the log is stored in the transaction of the figures, so no entry counts twice or is left out, even after a
    crash. The log is read in the order of its primary key, so a call costs the same for a log of any length.

    Args:
        size: How many numbers of entries to read at most; a few statements, for any number.
        using: Database alias.

    Returns:
        Whether marked entries are left to count, so that another call is worth while now. False while another process counts,
        or while a transaction is open that was open when the last entries were marked.
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
    """
    Delete figures that are older than ``TIMELINE["FIGURES_RETENTION"]``.

    Args:
        now: Story time.
        using: Database alias.

    Returns:
        How many rows were deleted.
    """
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
    columns = ("at", "from_state", "to_state", "reason_code", "attempt", "task__task_key")
    times = ("task__attempt", "task__scheduled_at", "task__started_at")
    sums: dict[tuple[datetime, str], _Sums] = defaultdict(_Sums)
    for at, source, target, code, attempt, key, latest, due, begun in told.values_list(*columns, *times):
        if source == target:
            continue
        hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        some = sums[hour, key]
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
        for name in _SECONDS:
            setattr(total, name, getattr(total, name) + getattr(some, name))
    totals.bulk_create(new.values())
    totals.bulk_update(known.values(), [*_COUNTS, *_BUCKETS, *_SECONDS], batch_size=100)


def _raise(counts: Counts, some: _Sums) -> None:
    for name in _COUNTS:
        setattr(counts, name, getattr(counts, name) + getattr(some, name))
    for name in _BUCKETS:
        setattr(counts, name, merged(getattr(counts, name), getattr(some, name)))


def _in(known: dict[tuple[datetime, str], Figure], sums: Iterable[Any]) -> list[Figure]:
    """The figures to which something is added. The query has found others of these hours and keys, too."""
    return [known[at] for at in sums if at in known]
