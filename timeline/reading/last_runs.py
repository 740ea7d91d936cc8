"""How the last run of each timeline ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Count

from timeline.models import ScheduledTask, TimelineRun
from timeline.store.bounded_counts import KIND, first_of_each


class LastRun(NamedTuple):
    """The run of a timeline that has ended last, and how many of its tasks have failed and were not redriven."""

    run: TimelineRun
    failed: int


def last_runs(timelines: Sequence[str], *, using: str) -> dict[str, LastRun]:
    """Name of a timeline → its last run; those of which no run has ended are left out. Two statements at most."""
    runs = first_of_each(TimelineRun.objects.using(using).of_timeline(KIND).last_ended(), timelines)
    dead = ScheduledTask.objects.using(using).dead_letters().filter(run__in=[run.pk for run in runs]).order_by()
    failed = dict(dead.values_list("run").annotate(Count("pk"))) if runs else {}
    return {run.timeline: LastRun(run, failed.get(run.pk, 0)) for run in runs}
