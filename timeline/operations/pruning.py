"""Prune: delete what has long ended, whole runs at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.core import serializers
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.models.task import ScheduledTaskQuerySet
from timeline.timing import check_time

NAMES: Final = ("entity_label", "entity_id", "task_key", "occurrence")  # What all revisions of an ad hoc task have in common.

Archive = Callable[[list[dict[str, Any]]], object]


class Pruned(NamedTuple):
    """How many rows were deleted."""

    runs: int = 0
    tasks: int = 0
    log_entries: int = 0


def prune(*, ended_before: datetime, archive: Archive | None = None, limit: int = 500, using: str) -> Pruned:
    """
    Delete runs that ended, and ad hoc tasks all of whose revisions ended, before a date. Events stay: they hold the keys.

    A run goes whole or not at all; of an open run nothing goes, because reconcile would make finished work again.

    Args:
        ended_before: Story time (aware).
        archive: Is given each batch of rows as plain data (Django's serialization, as Python objects) before it is
            deleted; if it raises, that batch stays.
        limit: At most so many runs, and as many ad hoc tasks with their revisions, in this call and transaction.
        using: Database alias.

    Returns:
        The counts; all 0 when nothing is left to prune.

    Raises:
        NaiveDatetime, DateOutOfRange: for ``ended_before``.
    """
    before = check_time("ended_before", ended_before)
    all_tasks = ScheduledTask.objects.using(using)
    with transaction.atomic(using=using):
        run_ids = _ended_runs(before, limit, using)
        of_runs = all_tasks.filter(run__in=run_ids).values_list("pk", flat=True) if run_ids else []
        task_ids = [*of_runs, *_ended_ad_hoc(before, limit, using)]
        if not run_ids and not task_ids:
            return Pruned()
        log = LogEntry.objects.using(using).filter(task__in=task_ids)
        tasks = all_tasks.filter(pk__in=task_ids)
        runs = TimelineRun.objects.using(using).filter(pk__in=run_ids)
        if archive is not None:
            archive([row for rows in (runs, tasks, log) for row in serializers.serialize("python", rows)])
        counts = [rows.delete()[0] for rows in (log, tasks, runs)]
    return Pruned(log_entries=counts[0], tasks=counts[1], runs=counts[2])


def _ended_runs(before: datetime, limit: int, using: str) -> list[UUID]:
    ended = TimelineRun.objects.using(using).filter(ended_at__lt=before).order_by("ended_at", "pk")
    still_open = ScheduledTask.objects.using(using).open().filter(run=OuterRef("pk"))
    return [run.pk for run in ended.exclude(Exists(still_open)).select_for_update(skip_locked=True)[:limit]]


def _ended_ad_hoc(before: datetime, limit: int, using: str) -> list[UUID]:
    """
    Lock all revisions of ad hoc tasks that have ended, and read them again.

    Who redrives one holds a revision of it. So a task is left of which somebody else has one, or of which there is one by now
    that was not there when they were locked.
    """
    tasks = ScheduledTask.objects.using(using).filter(run__isnull=True)
    too_young = _same_task(tasks.filter(Q(finished_at__isnull=True) | Q(finished_at__gte=before)))
    ended = tasks.filter(revision=1, finished_at__lt=before).exclude(too_young).order_by("finished_at", "pk")
    first_revisions = list(ended.values_list("pk", flat=True)[:limit])
    if not first_revisions:
        return []
    revisions = tasks.filter(_same_task(tasks.filter(pk__in=first_revisions))).only("finished_at", *NAMES)
    held = {task.pk for task in revisions.by_id().locked(skip_locked=True)}
    together: dict[tuple[str, ...], list[ScheduledTask]] = defaultdict(list)
    for task in revisions:
        together[task.entity_label, task.entity_id, task.task_key, task.occurrence].append(task)
    return [task.pk for several in together.values() if _may_go(several, held, before) for task in several]


def _may_go(revisions: Iterable[ScheduledTask], held: Collection[UUID], before: datetime) -> bool:
    return all(task.pk in held and task.finished_at and task.finished_at < before for task in revisions)


def _same_task(tasks: ScheduledTaskQuerySet) -> Exists:
    """Whether a revision of the outer ad hoc task is among these."""
    return Exists(tasks.filter(**{name: OuterRef(name) for name in NAMES}))
