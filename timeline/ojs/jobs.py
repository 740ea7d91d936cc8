"""Make jobs, find them, call them off."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django.db import router

from timeline.exceptions import TransitionNotAllowed
from timeline.ids import uuid7s
from timeline.lifecycle import FINAL, Reason, State, Trigger
from timeline.models import ScheduledTask
from timeline.ojs.conf import get_settings
from timeline.ojs.envelope import NewJob
from timeline.ojs.errors import Conflict, Duplicate, NotFound
from timeline.ojs.kinds import BEGINNING, key_of
from timeline.ojs.unique import resolve
from timeline.ojs.wire import NEVER, has_expired, is_pending, state_of
from timeline.operations.cancel import cancel
from timeline.store.insert import new_row
from timeline.store.new_rows import create_missing, state_at
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


MADE = "enqueued"  # What the log says of a job that was made, under ``ojs``.


def database() -> str:
    """The alias of the database that jobs are in."""
    return get_settings().DATABASE or str(router.db_for_write(ScheduledTask))


def all_jobs(*, using: str) -> ScheduledTaskQuerySet:
    """The rows of all jobs, each revision. By their key alone, so that no index of what has no entity is read."""
    return ScheduledTask.objects.using(using).filter(task_key__startswith=BEGINNING)


def latest(ids: Collection[UUID], *, using: str) -> dict[UUID, ScheduledTask]:
    """
    Jobs by their ids, each by its latest revision; those that are not there are left out. One statement by their primary keys,
    and one for those that may have been made anew, since they have ended.
    """
    if not ids:
        return {}
    found = all_jobs(using=using).filter(revision=1).in_bulk(list(ids))
    ended = [task for task in found.values() if task.state in FINAL]
    if ended:
        rows = ScheduledTask.objects.using(using).filter(
            run=None,
            entity_label="",
            entity_id="",
            task_key__in=sorted({task.task_key for task in ended}),
            occurrence__in=[task.occurrence for task in ended],
        )
        found |= {UUID(task.occurrence): task for task in rows.order_by("revision")}
    return found


def find(job_id: UUID, rows: ScheduledTaskQuerySet | None = None, *, using: str) -> ScheduledTask:
    """A job by its id; ``NotFound`` also if it is not among these rows."""
    found = latest([job_id], using=using).get(job_id)
    if found is None or (rows is not None and not rows.filter(pk=found.pk).exists()):
        raise NotFound(f"There is no job {job_id}.", resource_type="job", resource_id=str(job_id))
    return found


class Enqueued(NamedTuple):
    """Jobs in the order in which they were sent; ``there``: the ids of those that were there already, by their ``unique``."""

    tasks: list[ScheduledTask]
    there: frozenset[UUID] = frozenset()


def enqueue(
    jobs: Sequence[NewJob],
    *,
    now: datetime,
    using: str,
    about: dict[str, Any] | None = None,
    seen: ScheduledTaskQuerySet | None = None,
) -> Enqueued:
    """
    Make jobs, all or none: one statement for the rows, and one that logs them.

    Args:
        about: Further data that their rows keep.
        seen: The jobs that whoever asks may know of; None: all.

    Raises:
        Duplicate: if one of their ids is taken, or there is one like one of them that is to be the only one.
    """
    new = iter(uuid7s(len(jobs)))
    rows = [_row(job, job.id or next(new), now, about or {}) for job in jobs]
    if len({row.pk for row in rows}) < len(rows):
        raise Duplicate("Two of the jobs have the same id.")
    unique = {row.pk: job.unique for row, job in zip(rows, jobs, strict=True) if job.unique is not None}
    with atomic(using=using):
        instead = resolve(rows, unique, partial(latest, using=using), seen, now=now, using=using)
        wanted = [row for row in rows if row.pk not in instead]
        made = create_missing(wanted, using=using)
        if len(made) < len(wanted):
            there = {row.pk for row in made}
            taken = next(row.pk for row in wanted if row.pk not in there)
            raise Duplicate(f"There is a job {taken} already.", existing_job_id=str(taken))
        apply([Write(task=row, evidence={"ojs": MADE}) for row in made], now=now, using=using)
    tasks = [instead.get(row.pk, row) for row in rows]
    return Enqueued(tasks, frozenset(task.pk for task in instead.values()))


def _row(job: NewJob, key: UUID, now: datetime, about: dict[str, Any]) -> ScheduledTask:
    at = NEVER if job.pending else job.at or now
    due = max(at, now)  # A time that is past orders nobody before those who came earlier.
    columns = {
        "id": key,
        "task_key": key_of(job.job_type),
        "occurrence": str(key),
        "payload": {**job.payload, **about},
        "nominal_at": at,
        "scheduled_at": due,
        "state": state_at(due, now),
        "created_at": now,
        "expires_at": job.expires_at,
        "priority": -job.priority,
        "queue": job.queue,
        "max_attempts": job.policy.max_attempts,
    }
    return new_row(ScheduledTask, columns)


def call_off(task: ScheduledTask, reason: Reason, *, now: datetime, using: str) -> ScheduledTask:
    """Cancel a job; ``Conflict`` if it has ended."""
    if has_expired(task, now):
        raise Conflict("The job has expired.", job_id=task.occurrence, current_state=state_of(task, now))
    try:
        [cancelled] = cancel(task_ids=[task.pk], reason=reason, now=now, using=using)
    except TransitionNotAllowed as error:
        said = f"The job has ended: it is {error.state}."
        raise Conflict(said, job_id=task.occurrence, current_state=error.state) from None
    return cancelled


def activate(task: ScheduledTask, *, now: datetime, using: str) -> ScheduledTask:
    """Let a pending job be fetched; ``Conflict`` if it is not pending."""
    write = Write(task=task, triggers=(Trigger.DUE,), scheduled_at=now)
    done = apply([write], now=now, using=using) if is_pending(task) else []
    if not done:
        state = state_of(task, now) if task.state != State.SCHEDULED else State.SCHEDULED.value
        said = f"Only a pending job can be activated; this one is {state}."
        raise Conflict(said, job_id=task.occurrence, current_state=state)
    return done[0]
