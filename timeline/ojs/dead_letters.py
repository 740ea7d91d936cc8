"""Dead letters: jobs that were given up, and whose policy wants them kept for somebody to decide."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from timeline.exceptions import AlreadyOpen
from timeline.lifecycle import Reason
from timeline.models import ScheduledTask
from timeline.ojs.errors import Conflict, NotFound
from timeline.ojs.jobs import all_jobs, latest
from timeline.ojs.models import PutAway, UniqueKey
from timeline.ojs.wire import is_buried
from timeline.operations.redrive import redrive
from timeline.store.transactions import atomic

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

FORGOTTEN: Final = 1000  # Keys at a time.


def dead_letters(rows: ScheduledTaskQuerySet, queue: str = "", *, using: str) -> ScheduledTaskQuerySet:
    """Dead letters among these rows that nobody has put away, the latest first; ``queue``: only those of this queue."""
    away = PutAway.objects.using(using).filter(pk=OuterRef("pk"))
    kept = rows.dead_letters().filter(payload__options__retry__on_exhaustion="dead_letter").exclude(Exists(away))
    kept = kept.filter(queue=queue) if queue else kept
    return kept.order_by("-finished_at", "-pk")


def find_dead(job_id: UUID, rows: ScheduledTaskQuerySet, *, using: str) -> ScheduledTask:
    """A dead letter by the id of its job; ``NotFound`` if it is none."""
    task = latest([job_id], using=using).get(job_id)
    if task is None or not is_buried(task) or not dead_letters(rows, using=using).filter(pk=task.pk).exists():
        said = f"There is no dead letter of a job {job_id}."
        raise NotFound(said, resource_type="dead_letter_job", resource_id=str(job_id))
    return task


def fetch_again(task: ScheduledTask, reason: Reason, *, now: datetime, using: str) -> ScheduledTask:
    """Let a dead letter be fetched again: a new revision of its row, which has the same id outside and all its attempts."""
    try:
        [again] = redrive(task_ids=[task.pk], reason=reason, now=now, using=using)
    except AlreadyOpen:
        raise Conflict("The job was retried already.", job_id=task.occurrence) from None
    return again


def put_away(task: ScheduledTask, *, now: datetime, using: str) -> None:
    """List a dead letter no more."""
    PutAway.objects.using(using).get_or_create(pk=task.pk, defaults={"at": now})


def forget_pruned(*, using: str) -> int:
    """Forget those put away whose rows were pruned, and the keys of unique jobs likewise; gives how many."""
    away = all_jobs(using=using).filter(pk=OuterRef("pk"))
    forgotten, _each = PutAway.objects.using(using).exclude(Exists(away)).delete()
    more = True
    while more:
        with atomic(using=using):  # Locked first, then looked at anew: a job that is just made may have taken a key.
            old = keys_without_jobs(using=using).select_for_update(skip_locked=True)
            keys = list(old.values_list("pk", flat=True)[:FORGOTTEN])
            gone, _each = keys_without_jobs(using=using).filter(pk__in=keys).delete()
        forgotten, more = forgotten + gone, gone == FORGOTTEN
    return forgotten


def keys_without_jobs(*, using: str) -> QuerySet[UniqueKey]:
    """Keys of unique jobs whose last job was pruned."""
    unique = all_jobs(using=using).filter(pk=OuterRef("job"))
    return UniqueKey.objects.using(using).filter(job__isnull=False).exclude(Exists(unique))
