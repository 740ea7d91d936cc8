"""Runs that slots of schedules began, as they are in the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final
from uuid import UUID

from django.db import connections
from django.db.models import Q

from timeline.dialects import dialect_of
from timeline.lifecycle import CREATED_AS
from timeline.models import ScheduledTask, TimelineRun

# Stands in place of the name of an event in a row that waits. No event has such a name: names have no blank and no colon.
_ENDS: Final = "run:"
BEGUN: Final = ~Q(state__in=CREATED_AS, attempt=0)  # Of tasks.


def try_system(*, using: str) -> bool:
    """Try the lock of system timelines until the transaction ends, without waiting. It stands where entities do."""
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
    return set(there) - set(tasks.filter(BEGUN).values_list("run_id", flat=True))


def lock_waiting(runs: Sequence[TimelineRun], *, using: str) -> list[TimelineRun]:
    """Lock the tasks of runs that the caller has locked. Returns the runs of which nothing has begun; now nothing can begin."""
    tasks = ScheduledTask.objects.using(using).filter(run__in=[run.pk for run in runs])
    list(tasks.by_id().only("pk").locked())
    waiting = waiting_among(runs, using=using)
    return [run for run in runs if run.pk in waiting]


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A task rests until an earlier run of its timeline, that of ``key``, has ended."""

    timeline: str
    key: str

    @property
    def columns(self) -> dict[str, str | bool]:
        """The columns of the row of the task."""
        awaits: dict[str, str | bool] = {"awaits": end_of(self.timeline), "awaits_key": self.key}
        return awaits | {"awaits_label": "", "awaits_id": "", "awaits_other": False}


def end_of(timeline: str) -> str:
    """The text in the row of a task that waits for the end of a run of this timeline."""
    return _ENDS + timeline


def have_ended(those: Sequence[Behind], *, using: str) -> list[bool]:
    """For each item, whether the earlier run has ended. One statement."""
    open_runs = TimelineRun.objects.using(using).open().filter(entity_label="", entity_id="", once=True)
    asked = open_runs.filter(timeline__in={each.timeline for each in those}, key__in={each.key for each in those})
    there = set(asked.values_list("timeline", "key"))
    return [(each.timeline, each.key) not in there for each in those]


def clear(run_ids: Collection[UUID], *, using: str) -> None:
    """Write that no earlier run is in the way of these runs. One statement, or none if there are no runs."""
    if run_ids:
        TimelineRun.objects.using(using).filter(pk__in=run_ids, is_cleared=False).update(is_cleared=True)
