"""``TimelineCollector``: what Prometheus' client asks for the metrics of all databases that have tasks."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

from django.db import DatabaseError
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from timeline.clocks import story_now
from timeline.metrics.families import Families, gauge
from timeline.metrics.gauges import gauges_of_apps
from timeline.reading.diagnosing import databases
from timeline.reading.measuring import measure

logger = logging.getLogger("timeline")


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
        return [*Families(), *(gauge(each.name, each.told) for each in gauges_of_apps())]

    def collect(self) -> Iterator[Metric]:
        """Read them all."""
        families, others = Families(), {each: gauge(each.name, each.told) for each in gauges_of_apps()}
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
