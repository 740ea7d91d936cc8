"""``Gauge``: a number that an app above this room adds to the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.apps import apps
from django.utils.module_loading import import_string


@dataclass(frozen=True, slots=True)
class Gauge:
    """
    A number that goes up and down.

    Args:
        name: As Prometheus calls it.
        told: What it says, in a sentence.
        read: Reads it from the database of an alias, in one bounded statement; None: that database has none.
    """

    name: str
    told: str
    read: Callable[[str], float | None]


def gauges_of_apps() -> Iterable[Gauge]:
    """Those of the apps of the package that are installed: ``gauges`` of their configuration names them."""
    for config in apps.get_app_configs():
        if config.name.startswith("timeline.") and (named := getattr(config, "gauges", "")):
            yield from import_string(named)
