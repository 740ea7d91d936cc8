"""Runs that slots of schedules began, as they are in the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from uuid import UUID

from django.db import connections

from timeline.dialects import dialect_of
from timeline.lifecycle import CREATED_AS
from timeline.models import ScheduledTask, TimelineRun


def try_system(*, using: str) -> bool:
    """
    Try the lock of system timelines, until the transaction ends, without waiting. In the lock order it stands where entities
    do. Returns whether it was free.
    """
    if dialect_of(using).has_one_writer:
        return True
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("try_system"))
        return bool(cursor.fetchone()[0])


def last_slots(timelines: Sequence[str], *, using: str) -> dict[str, list[TimelineRun]]:
    """Read the last two runs that slots of some timelines began: name → runs, the last first."""
    dialect = dialect_of(using)
    found: dict[str, list[TimelineRun]] = defaultdict(list)
    asked = {"timelines": dialect.list_of(timelines)}
    for run in TimelineRun.objects.using(using).raw(dialect.sql("last_slots"), asked):
        found[run.timeline].append(run)
    return {name: sorted(runs, key=attrgetter("key"), reverse=True) for name, runs in found.items()}


def waiting_among(runs: Sequence[TimelineRun], *, using: str) -> set[UUID]:
    """Ids of the runs that are open, and whose tasks have not begun."""
    there = [run.pk for run in runs if run.is_open]
    if not there:
        return set()
    tasks = ScheduledTask.objects.using(using).filter(run__in=there)
    begun = tasks.exclude(state__in=CREATED_AS, attempt=0).values_list("run_id", flat=True)
    return set(there) - set(begun)


def hold_waiting(runs: Sequence[TimelineRun], *, using: str) -> list[TimelineRun]:
    """Lock the tasks of runs that the caller has locked. Returns the runs of which nothing has begun; now nothing can begin."""
    tasks = ScheduledTask.objects.using(using).filter(run__in=[run.pk for run in runs])
    list(tasks.by_id().only("pk").locked())
    waiting = waiting_among(runs, using=using)
    return [run for run in runs if run.pk in waiting]
