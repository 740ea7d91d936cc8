"""Redrive: run again what has ended, as the next revision of its row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from timeline.exceptions import AlreadyOpen, RunEnded, TransitionNotAllowed
from timeline.lifecycle import OPEN, Reason
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.task import ScheduledTaskQuerySet
from timeline.operations._creating import create_tasks, next_revision
from timeline.operations._locking import lock_runs, lock_tasks
from timeline.operations.reconciling import reconcile_locked


def redrive(*, task_ids: Sequence[UUID], reason: Reason, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Make the next revision of tasks that have ended, due at once. A run that was finished is opened again for it.

    Args:
        task_ids: Primary keys, any number; all are redriven or none.
        reason: Text shown to people, and who decided; kept on the new rows.
        now: Story time of the decision.
        using: Database alias the tasks live in.

    Returns:
        The new tasks, in the order given: in state ``available``, unless the run as it is now does not want them at once
        (its anchor changed meanwhile, or what they follow did not complete), which their reason says.

    Raises:
        ScheduledTask.DoesNotExist: if one of them is not there.
        TransitionNotAllowed: if one of them has not ended.
        AlreadyOpen: if a later revision of one is open, two revisions of one are given, or another run of the same timeline
            and key is open.
        RunEnded: if the run of one ended by an exit. Nothing is changed in any of these cases.
    """
    with transaction.atomic(using=using):
        tasks = lock_tasks(task_ids, using=using)
        names = [(task.run_id, task.entity_ref, task.task_key, task.occurrence) for task in tasks]
        for position, task in enumerate(tasks):
            _check(task, using)
            if names[position] in names[:position]:
                raise AlreadyOpen(task.pk)
        _reopen([task.run for task in tasks if task.run is not None], using=using)
        again = [_again(task, reason, now, using) for task in tasks]
        create_tasks(again, using=using)
        refs = [task.entity_ref for task in tasks]
        locked = lock_runs({task.run_id for task in tasks if task.run_id}, refs, using=using)
        reconcile_locked(locked.runs, locked.entities, now=now, using=using)
        stored = ScheduledTask.objects.using(using).select_related("run").in_bulk([task.pk for task in again])
    return [stored[task.pk] for task in again]


def _check(task: ScheduledTask, using: str) -> None:
    if task.state in OPEN:
        raise TransitionNotAllowed(task.state, "redrive", "It has not ended; move it or run it now.", task.pk)
    if _family(task, using).open().exists():
        raise AlreadyOpen(task.pk)
    if task.run is not None and not task.run.is_open and not task.run.is_finished:
        raise RunEnded(task.pk, task.run.end_reason)


def _again(task: ScheduledTask, reason: Reason, now: datetime, using: str) -> ScheduledTask:
    expires_at = task.expires_at and now + (task.expires_at - task.nominal_at)
    again = next_revision(task, now, expires_at=expires_at, now=now)
    latest = _family(task, using).order_by("-revision").values_list("revision", flat=True)
    again.revision = latest[0] + 1
    again.reason_code, again.reason, again.actor = reason.code, reason.text[:200], reason.actor[:150]
    return again


def _family(task: ScheduledTask, using: str) -> ScheduledTaskQuerySet:
    """All revisions of the same task."""
    tasks = ScheduledTask.objects.using(using).filter(task_key=task.task_key, occurrence=task.occurrence)
    return tasks.filter(run=task.run_id) if task.run_id else tasks.for_entity(task.entity_ref).filter(run__isnull=True)


def _reopen(runs: Sequence[TimelineRun], *, using: str) -> None:
    for run in {run.pk: run for run in runs if not run.is_open}.values():
        same = TimelineRun.objects.using(using).open().for_entity(run.entity_ref)
        if same.filter(timeline=run.timeline, key=run.key).exists():
            raise AlreadyOpen(f"a later run of {run.timeline}")
        TimelineRun.objects.using(using).filter(pk=run.pk).update(ended_at=None, end_reason="")
        run.ended_at, run.end_reason = None, ""
