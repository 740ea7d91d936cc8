"""What is wrong with clocks that start timelines: one that stands still, or a time that has passed without a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Final

from django.utils.translation import gettext as _

from timeline.conf import get_settings
from timeline.features.recurring.planner import Known, passed_since, silent_until
from timeline.features.recurring.store import last_slots
from timeline.registry import registry
from timeline.timing import told_time

MOST_NAMED: Final = 10  # Timelines in a sentence.
LATE: Final = 60  # Poll intervals that a run may be late before something is wrong: a minute by default.


def troubles_of_clocks(*, now: datetime, using: str, is_polled: bool) -> Iterator[str]:
    """
    Timelines whose clock stands still because it was ahead once, and, if polls begin runs, those of which a time has passed
    without one. If no timeline starts by the clock, nothing is asked.
    """
    clocks = {known.name: known.recurring for known in registry if known.recurring is not None}
    if not clocks or not get_settings().AUTOSTART:
        return
    until: dict[str, datetime] = {}
    missed: dict[str, datetime] = {}
    for name, runs in last_slots(list(clocks), using=using).items():
        last, before, *_rest = [*(Known(run.started_at, run.key, False, run.recorded_at) for run in runs), None]
        with suppress(OverflowError):
            if (at := silent_until(clocks[name], last, before, now=now)) is not None:
                until[name] = at
            elif (
                is_polled
                and (at := passed_since(clocks[name], last, now=now - LATE * get_settings().POLL_INTERVAL)) is not None
            ):
                missed[name] = at
    if until:
        yield _(
            "A clock was ahead when the next runs of %(timelines)s were made: none begins before %(at)s. See that all clocks "
            "are right. To begin sooner, give the timelines other names."
        ) % {"timelines": _named(until), "at": told_time(min(until.values()))}
    if missed:
        yield _(
            "A time of %(timelines)s has passed and no run of it began, the first on %(at)s. Polls begin runs; see that they "
            "succeed."
        ) % {"timelines": _named(missed), "at": told_time(min(missed.values()))}


def _named(names: Iterable[str]) -> str:
    known = sorted(names)
    return ", ".join([*known[:MOST_NAMED], *(["…"] if known[MOST_NAMED:] else [])])
