"""Prune: delete runs and ad hoc tasks that ended long ago, each as a whole, and holds that are over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.core import serializers
from django.db import connections
from django.db.models import QuerySet

from timeline.dialects import Among, dialect_of
from timeline.features.holds.store import prune_admissions
from timeline.features.recurring.store import last_slots
from timeline.models import Hold, LogEntry, RunEntry, ScheduledTask, StepRecord, Taking, TimelineRun
from timeline.registry import registry
from timeline.store.transactions import atomic
from timeline.timing import check_time

Archive = Callable[[list[dict[str, Any]]], object]


class Pruned(NamedTuple):
    """How many rows were deleted."""

    runs: int = 0
    tasks: int = 0
    log_entries: int = 0
    holds: int = 0


def prune(*, ended_before: datetime, archive: Archive | None = None, limit: int = 500, using: str) -> Pruned:
    """
    Delete runs that ended before a story time, and ad hoc tasks if all their revisions did; gives how many rows, all 0 if none
    is left. Events stay, because they hold the keys.

    Nothing of an open run is deleted, as reconciling would make its finished tasks again. If a run may begin only once, its
    own row stays for its key, and is not counted. If the clock starts its timeline, the rows of the last two runs stay. Holds
    that were over by then are deleted, unless they may overlap with an open one: their common time must count once. Old
    records of brakes go, too.

    Args:
        archive: Called with each batch of rows as plain data (Django's serialization, as Python objects) before it is deleted;
            if it raises, that batch stays.
        limit: Runs, ad hoc tasks (with all revisions) and holds to delete at most, each, in this call and transaction.

    Raises:
        NaiveDatetime, DateOutOfRange: for ``ended_before``.
    """
    before = check_time("ended_before", ended_before)
    all_tasks = ScheduledTask.objects.using(using)
    with atomic(using=using):
        run_ids = _ended_runs(before, limit, using)
        of_runs = all_tasks.filter(run__in=run_ids).values_list("pk", flat=True) if run_ids else []
        task_ids = [*of_runs, *_ended_ad_hoc(before, limit, using)]
        hold_ids = _ended_holds(before, limit, using)
        prune_admissions(before, most=10 * limit, using=using)
        if not run_ids and not task_ids and not hold_ids:
            return Pruned()
        log = LogEntry.objects.using(using).filter(task__in=task_ids)
        # All revisions are deleted together, so the first one, the origin, is among them.
        steps = StepRecord.objects.using(using).filter(origin__in=task_ids)
        tasks = all_tasks.filter(pk__in=task_ids)
        runs = TimelineRun.objects.using(using).filter(pk__in=run_ids)
        holds = Hold.objects.using(using).filter(pk__in=hold_ids)
        for_good, kept, moving = _parted(runs, using)
        entries = RunEntry.objects.using(using).filter(run__in=moving) if moving else RunEntry.objects.none()
        if archive is not None:
            several = (runs, entries, tasks, log, _whole(steps), holds)
            archive([row for rows in several for row in serializers.serialize("python", rows)])
        entries.delete()
        Taking.objects.using(using).filter(item__in=[*task_ids, *run_ids]).delete()
        counts = [rows.delete()[0] for rows in (steps, log, tasks, runs.filter(pk__in=for_good), holds)]
        if kept:
            runs.filter(pk__in=kept).update(pruned=True)
    return Pruned(log_entries=counts[1], tasks=counts[2], runs=counts[3], holds=counts[4])


def _whole(steps: Iterable[StepRecord]) -> list[StepRecord]:
    """The records, each with the id of its task. The table leaves that out if the task is the origin."""
    told = list(steps)
    for record in told:
        record.task_id = record.by_task
    return told


def _parted(runs: QuerySet[TimelineRun], using: str) -> tuple[list[UUID], list[UUID], list[UUID]]:
    """
    Split runs: those to delete, those whose rows stay as no other run may take their place, and those to delete that are of
    machines, as their entries are deleted, too. Of a timeline started by the clock the last two stay: nobody looks for an
    earlier slot.
    """
    once = {known.name for known in registry if known.once}
    by_clock = {known.name for known in registry if known.recurring is not None}
    parted: dict[bool, list[UUID]] = {False: [], True: []}
    some = list(runs.only("timeline", "once", "state"))
    asked = sorted(by_clock & {run.timeline for run in some})
    last = {run.pk for several in last_slots(asked, using=using).values() for run in several} if asked else set()
    for run in some:
        stays = run.pk in last if run.timeline in by_clock else run.once or run.timeline in once
        parted[stays].append(run.pk)
    going = set(parted[False])
    return parted[False], parted[True], [run.pk for run in some if run.state and run.pk in going]


def _ended_holds(before: datetime, limit: int, using: str) -> list[UUID]:
    """Find holds that were over before the date. A hold that overlaps with an open one is needed when that one is released."""
    holds = Hold.objects.using(using)
    ended = holds.filter(released_at__lt=before)
    first = holds.open().oldest_first().values_list("created_at", flat=True).first()
    ended = ended if first is None else ended.filter(lifted_at__lte=first)
    return list(ended.order_by("released_at", "pk").values_list("pk", flat=True)[:limit])


def _ended_runs(before: datetime, limit: int, using: str) -> list[UUID]:
    return [run_id for [run_id] in _ask("ended_runs", before, limit, using)]


def _ended_ad_hoc(before: datetime, limit: int, using: str) -> list[UUID]:
    """
    Find all revisions of ended ad hoc tasks, lock them, and read once more. Redriving locks a revision, so a task is left out
    if somebody has locked one, or if there is a new one that was not there before.
    """
    found = _ask("ended_ad_hoc", before, limit, using)
    if not found:
        return []
    tasks = ScheduledTask.objects.using(using).filter(Among(task_id for _first, task_id in found))
    held = {task.pk for task in tasks.by_id().locked(skip_locked=True).only("pk")}
    revisions: dict[UUID, set[UUID]] = defaultdict(set)
    for first, task_id in _ask("ended_ad_hoc", before, limit, using):
        revisions[first].add(task_id)
    return [task_id for several in revisions.values() if several <= held for task_id in several]


def _ask(verb: str, before: datetime, limit: int, using: str) -> list[tuple[UUID, ...]]:
    """Execute a statement that gives ids."""
    connection = connections[using]
    moment = connection.ops.adapt_datetimefield_value(before)
    with connection.cursor() as cursor:
        cursor.execute(dialect_of(using).sql(verb), {"before": moment, "most": limit})
        return [tuple(key if isinstance(key, UUID) else UUID(key) for key in row) for row in cursor.fetchall()]
