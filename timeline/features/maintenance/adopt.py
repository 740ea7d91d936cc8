"""Adopt: make a database belong to this site, and if wanted end what another site left open."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from timeline.conf import get_settings
from timeline.lifecycle import Reason, RunEnd, Trigger
from timeline.models import Identity, ScheduledTask, TimelineRun
from timeline.models.upkeep import THE_ONE
from timeline.operations.leave import end_runs
from timeline.store.locks import lock_runs, lock_tasks
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply

BATCH: Final = 500


class Open(NamedTuple):
    """How many runs and tasks have not ended."""

    runs: int = 0
    tasks: int = 0


def count_open(*, using: str) -> Open:
    """Count the runs and tasks in a database that have not ended."""
    runs = TimelineRun.objects.using(using).open().count()
    return Open(runs, ScheduledTask.objects.using(using).open().count())


def adopt(*, now: datetime, using: str) -> None:
    """Make the database belong to ``TIMELINE["SITE"]``: from now on its open tasks run here."""
    Identity.objects.using(using).update_or_create(
        pk=THE_ONE, defaults={"site": get_settings().SITE, "adopted_at": now, "polled_at": None}
    )


def clear(*, reason: Reason, now: datetime, using: str) -> Open:
    """End all open runs and cancel all open tasks, in batches of one transaction each; gives how many."""
    runs = tasks = 0
    while ended := _end_some_runs(reason, now, using):
        runs, tasks = runs + ended.runs, tasks + ended.tasks
    while cancelled := _cancel_some(reason, now, using):
        tasks += cancelled
    return Open(runs, tasks)


def _end_some_runs(reason: Reason, now: datetime, using: str) -> Open | None:
    with atomic(using=using):
        some = list(TimelineRun.objects.using(using).open().order_by("pk")[:BATCH])
        locked = lock_runs((run.pk for run in some), (run.entity_ref for run in some), using=using)
        still = [run for run in locked.runs if run.is_open]
        cancelled = end_runs(still, RunEnd.LEFT, reason=reason, now=now, using=using)
    return Open(len(some), len(cancelled)) if some else None


def _cancel_some(reason: Reason, now: datetime, using: str) -> int:
    with atomic(using=using):
        some = ScheduledTask.objects.using(using).open().order_by("pk").values_list("pk", flat=True)[:BATCH]
        tasks = lock_tasks(list(some), using=using)
        writes = [Write(task=task, triggers=(Trigger.CANCEL,), reason=reason) for task in tasks if task.is_open]
        apply(writes, now=now, using=using)
    return len(tasks)
