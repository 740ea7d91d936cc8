"""``TimelineCollector``: what Prometheus' client asks for the metrics of all databases that have tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Final

from django.apps import apps
from django.db import DatabaseError
from django.utils.module_loading import import_string
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from timeline.clocks import story_now
from timeline.features.holds.store import places_of
from timeline.features.maintenance.figures import BOUNDS, SIZE, merged
from timeline.lifecycle import FINAL
from timeline.models import Total
from timeline.reading.diagnosis import databases
from timeline.reading.machinery import Measured, measure

MOST_TASKS: Final = (
    500  # That have a name. A kind that was counted once keeps its own for ever, so that no counter falls.
)
OTHERS: Final = "(others)"  # What the kinds are called that were counted first after so many.

_DATABASE: Final = ("database",)
_TASK: Final = ("database", "task")
_BOUNDS: Final = [*map(str, BOUNDS), "+Inf"]
_COUNTS: Final = ("started", "completed", "failed", "discarded", "cancelled")
_SUMS: Final = ("reentered", "late_seconds", "taken_seconds")

logger = logging.getLogger("timeline")


class MetricFamilies:
    """All metrics, as one scrape tells them; empty until ``add``."""

    def __init__(self) -> None:
        self.up = _gauge("timeline_up", "Whether the database answered this scrape.")
        self.started = CounterMetricFamily("timeline_attempts_started", "Attempts that began.", labels=_TASK)
        self.retried = CounterMetricFamily(
            "timeline_attempts_retried", "Attempts that failed and are tried again.", labels=_TASK
        )
        self.reentered = CounterMetricFamily(
            "timeline_handlers_reentered",
            "Entries of handlers that were undone through no fault of theirs, and repeated in the same attempt.",
            labels=_TASK,
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
        self.waiting = _gauge("timeline_waiting", "What waits for a person, by kind.", (*_DATABASE, "kind"))
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
            self.available.add_metric([database, key, places_of(key)[0]], number)
        for kind, number in measured.waiting.as_data().items():
            if kind != "endpoints":
                self.waiting.add_metric([database, kind], number)
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
        self.reentered.add_metric(labels, total.reentered)
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
        for name in (*_COUNTS, *_SUMS):
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


@dataclass(frozen=True, slots=True)
class Gauge:
    """A number that goes up and down. ``read`` takes an alias; one bounded statement; None: that database has none."""

    name: str
    told: str
    read: Callable[[str], float | None]


def gauges_of_apps() -> Iterable[Gauge]:
    """Those of the apps of the package that are installed: ``gauges`` of their configuration names them."""
    for config in apps.get_app_configs():
        if config.name.startswith("timeline.") and (named := getattr(config, "gauges", "")):
            yield from import_string(named)


class TimelineCollector(Collector):
    """
    Metrics, read from the databases with each scrape: all processes of a site tell the same, and after a restart, too.

    Register it once in each process that answers scrapes::

        prometheus_client.REGISTRY.register(TimelineCollector())

    A database that does not answer has ``timeline_up`` 0 and nothing else; it keeps no other metrics of the site back.

    Args:
        using: Aliases of the databases; None: all that have tasks.
    """

    def __init__(self, using: Collection[str] | None = None) -> None:
        self._using = using

    def describe(self) -> list[Metric]:
        """Name the metrics, without asking any database: a collector is registered while a process starts."""
        return [*MetricFamilies(), *(gauge(each.name, each.told) for each in gauges_of_apps())]

    def collect(self) -> Iterator[Metric]:
        """Read them all."""
        families, others = MetricFamilies(), {each: gauge(each.name, each.told) for each in gauges_of_apps()}
        for alias in databases() if self._using is None else self._using:
            try:
                now = story_now(alias)
                measured, read = measure(now=now, using=alias), {each: each.read(alias) for each in others}
            except DatabaseError:
                logger.warning("The database %s cannot be measured.", alias, exc_info=True)
                families.up.add_metric([alias], 0.0)
                continue
            families.add(alias, measured, now=now)
            for each, value in read.items():
                if value is not None:
                    others[each].add_metric([alias], value)
        yield from families
        yield from others.values()
