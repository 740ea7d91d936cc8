"""The metrics there are: names, what each says, and how what was measured fills them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from timeline.lifecycle import FINAL
from timeline.models import Total
from timeline.reading.measuring import Measured
from timeline.store.holds import queue_of
from timeline.timing.buckets import BOUNDS, SIZE, merged

MOST_TASKS: Final = (
    500  # That have a name. A kind that was counted once keeps its own for ever, so that no counter falls.
)
OTHERS: Final = "(others)"  # What the kinds are called that were counted first after so many.

_DATABASE: Final = ("database",)
_TASK: Final = ("database", "task")
_BOUNDS: Final = [*map(str, BOUNDS), "+Inf"]
_COUNTS: Final = ("started", "completed", "failed", "discarded", "cancelled")
_SECONDS: Final = ("late_seconds", "taken_seconds")


class Families:
    """
    All metrics, as one scrape tells them.

    Begin with none filled in; ``add`` those of each database.
    """

    def __init__(self) -> None:
        self.up = _gauge("timeline_up", "Whether the database answered this scrape.")
        self.started = CounterMetricFamily("timeline_attempts_started", "Attempts that began.", labels=_TASK)
        self.retried = CounterMetricFamily(
            "timeline_attempts_retried", "Attempts that failed and are tried again.", labels=_TASK
        )
        self.ended = CounterMetricFamily(
            "timeline_tasks_ended", "Tasks that ended, by the state they ended in.", labels=(*_TASK, "state")
        )
        self.lateness = HistogramMetricFamily(
            "timeline_attempt_lateness_seconds", "How late attempts began.", labels=_TASK
        )
        self.duration = HistogramMetricFamily(
            "timeline_attempt_duration_seconds", "How long attempts took that ended by themselves.", labels=_TASK
        )
        self.uncounted = _gauge("timeline_log_entries_uncounted", "Numbers of the log that no counter has yet.")
        self.available = _gauge("timeline_tasks_available", "Tasks that a worker may start.", (*_TASK, "queue"))
        self.pending = _gauge("timeline_tasks_pending", "Tasks that are claimed and not started.")
        self.active = _gauge("timeline_tasks_active", "Tasks that run.")
        self.stuck = _gauge("timeline_tasks_stuck", "Tasks that a lost worker left and nobody has taken over.")
        self.overdue = _gauge("timeline_tasks_overdue", "Tasks due for longer than two polls.")
        self.oldest = _gauge("timeline_oldest_overdue_age_seconds", "How long the first of them has been due.")
        self.holds = _gauge("timeline_holds", "Holds there are.")
        self.polled = _gauge("timeline_last_poll_timestamp_seconds", "When somebody polled last; 0: never.")
        self.workers = _gauge("timeline_workers", "Workers that gave a sign and were not found to be gone.")
        self.missed = _gauge("timeline_workers_missed", "Those of them whose next sign is overdue.")
        self.signed = _gauge("timeline_worker_last_sign_timestamp_seconds", "The last sign of any worker; 0: none.")

    def __iter__(self) -> Iterator[Metric]:
        yield from vars(self).values()

    def add(self, database: str, measured: Measured, *, now: datetime) -> None:
        """Fill in what a database was like at this moment of story time."""
        for total in _named(measured.totals):
            self._add_total([database, total.task_key], total)
        for key, number in measured.available.items():
            self.available.add_metric([database, key, queue_of(key)], number)
        oldest = measured.oldest_overdue_at
        for family, value in (
            (self.up, 1.0),
            (self.uncounted, measured.uncounted),
            (self.pending, measured.pending),
            (self.active, measured.active),
            (self.stuck, measured.stuck),
            (self.overdue, measured.overdue),
            (self.oldest, (now - oldest).total_seconds() if oldest else 0.0),
            (self.holds, measured.holds),
            (self.polled, _timestamp(measured.polled_at)),
            (self.workers, measured.workers),
            (self.missed, measured.workers_missed),
            (self.signed, _timestamp(measured.signed_at)),
        ):
            family.add_metric([database], value)

    def _add_total(self, labels: list[str], total: Total) -> None:
        self.started.add_metric(labels, total.started)
        self.retried.add_metric(labels, total.failed)
        for state in sorted(FINAL):
            self.ended.add_metric([*labels, state.value], getattr(total, state))
        self.lateness.add_metric(labels, _buckets(total.lateness), total.late_seconds)
        self.duration.add_metric(labels, _buckets(total.duration), total.taken_seconds)


def gauge(name: str, told: str) -> GaugeMetricFamily:
    """Make one of a database that is not filled in."""
    return _gauge(name, told)


def _gauge(name: str, told: str, labels: Sequence[str] = _DATABASE) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, told, labels=labels)


def _named(totals: Sequence[Total]) -> list[Total]:
    """The first under their own names, all others summed up: with each scrape the same, as no total is ever deleted."""
    if len(totals) <= MOST_TASKS:
        return list(totals)
    rest = Total(task_key=OTHERS)
    for total in totals[MOST_TASKS:]:
        for name in (*_COUNTS, *_SECONDS):
            setattr(rest, name, getattr(rest, name) + getattr(total, name))
        rest.lateness = merged(rest.lateness, total.lateness)
        rest.duration = merged(rest.duration, total.duration)
    return [*totals[:MOST_TASKS], rest]


def _buckets(counts: Sequence[int]) -> list[tuple[str, float]]:
    """Each bound with how many are within it, as Prometheus counts."""
    whole = merged(counts, [])[:SIZE]
    return list(zip(_BOUNDS, map(float, accumulate(whole)), strict=True))


def _timestamp(at: datetime | None) -> float:
    return at.timestamp() if at else 0.0
