"""Fetch: a worker outside takes jobs, the most urgent first, and has them until its lease runs out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db.models import Q

from timeline.features.holds.store import on_hold
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.models import ScheduledTask, Scope
from timeline.ojs.conf import get_settings
from timeline.ojs.envelope import lease_of, timeout_of
from timeline.ojs.jobs import all_jobs
from timeline.ojs.kinds import BEGINNING
from timeline.ojs.models import Cron, Queue
from timeline.ojs.outcomes import give_up_lost
from timeline.ojs.rates import Room, counted  # of rates
from timeline.ojs.wire import has_expired
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

SERIAL: Final = "one_at_a_time"  # In a payload: the schedule whose jobs do not run beside each other.
STAGED: Final = 1000
_EXPIRED: Final = Reason(ReasonCode.EXPIRED)


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    What a worker asks for.

    Args:
        queues: In the order in which they are looked through.
        lease: How long it wants each job; None: as long as the job or the settings say.
    """

    queues: Sequence[str]
    count: int
    worker: str
    lease: timedelta | None = None


def fetch(wanted: Wanted, rows: ScheduledTaskQuerySet, *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Take available jobs; several workers may do so at once, and none waits for another. One statement for each queue that is
    looked into, and one that takes all that was found. ``rows`` are those that the worker may see.
    """
    with atomic(using=using):
        paused = set(
            Queue.objects.using(using)
            .filter(name__in=wanted.queues, paused_at__isnull=False)
            .values_list("name", flat=True)
        )
        queues = [name for name in dict.fromkeys(wanted.queues) if name not in paused]
        if not queues:
            return []
        give_up_lost(all_jobs(using=using).filter(queue__in=queues), now=now, using=using)
        _stage(queues, now, using)
        queues, rows = _not_held(queues, rows, using)
        found = _found(queues, wanted.count, rows, now, using)
        found = counted(found, now=now, using=using)  # of rates
        return apply([_write(task, wanted) for task in found], now=now, using=using)


def _not_held(
    queues: Sequence[str], rows: ScheduledTaskQuerySet, using: str
) -> tuple[list[str], ScheduledTaskQuerySet]:
    """What operators have not put on hold: queues, and of these rows the kinds."""
    held = on_hold(using=using)
    kinds = [target for scope, target in held.targets if scope == Scope.TASK]
    free = [name for name in queues if not held.covers(BEGINNING, name)]
    return free, rows.exclude(task_key__in=kinds) if kinds else rows


def _stage(queues: Sequence[str], now: datetime, using: str) -> None:
    """Make due jobs available, so that none waits for the next poll."""
    due = ScheduledTask.objects.using(using).filter(task_key__startswith=BEGINNING, queue__in=queues).to_stage(now)
    tasks = list(due.locked(skip_locked=True)[:STAGED])
    apply([Write(task=task, triggers=(Trigger.DUE,)) for task in tasks], now=now, using=using)


def _found(
    queues: Sequence[str], count: int, rows: ScheduledTaskQuerySet, now: datetime, using: str
) -> list[ScheduledTask]:
    """Lock what is to be taken. What has expired is called off on the way; a job may have to wait for others."""
    taken: list[ScheduledTask] = []
    room = Room(now, using)  # of rates
    for queue in queues:
        waited_for: set[str] = set()  # Schedules.
        while left := count - len(taken):
            ready = rows.filter(queue=queue).ready().free().exclude(pk__in=[task.pk for task in taken])
            ready = room.passing(ready)  # of rates
            if waited_for:
                others = Q(**{f"payload__{SERIAL}__isnull": True}) | ~Q(
                    **{f"payload__{SERIAL}__in": sorted(waited_for)}
                )
                ready = ready.filter(others)
            tasks = list(ready.locked(skip_locked=True)[:left])
            over = [task for task in tasks if has_expired(task, now)]
            apply([_expiry(task) for task in over], now=now, using=using)
            waiting = _waiting([task for task in tasks if task not in over], using)
            waited_for |= {task.payload[SERIAL] for task in tasks if task.pk in waiting}
            waiting |= room.without([task for task in tasks if task not in over and task.pk not in waiting])  # of rates
            taken += [task for task in tasks if task not in over and task.pk not in waiting]
            if len(tasks) < left or not (over or waiting):
                break
    return taken


def _expiry(task: ScheduledTask) -> Write:
    return Write(task=task, triggers=(Trigger.CANCEL,), reason=_EXPIRED)


def _waiting(tasks: Collection[ScheduledTask], using: str) -> set[UUID]:
    """Those that have to wait for another job of their schedule: one that runs, or that is taken now."""
    serial = [task for task in tasks if task.payload.get(SERIAL)]
    if not serial:
        return set()
    names = {task.payload[SERIAL] for task in serial}
    # Whoever has the schedule locked is about to take one of its jobs.
    locked = Cron.objects.using(using).filter(name__in=names).order_by("pk").select_for_update(skip_locked=True)
    free = set(locked.values_list("name", flat=True))
    active = ScheduledTask.objects.using(using).filter(
        task_key__in={task.task_key for task in serial}, state=State.ACTIVE, payload__has_key=SERIAL
    )
    busy = {payload[SERIAL] for payload in active.values_list("payload", flat=True)}
    first, free = _first_of_removed(names - free - busy, serial, using), free - busy
    waiting = set()
    for task in serial:
        if task.payload[SERIAL] in free:
            free.remove(task.payload[SERIAL])
        elif task.pk not in first:
            waiting.add(task.pk)
    return waiting


def _first_of_removed(names: Collection[str], serial: Collection[ScheduledTask], using: str) -> set[UUID]:
    """Of each of these schedules that was removed, the first open job: there is no row to lock, so no other one is taken."""
    if not names:
        return set()
    removed = set(names) - set(Cron.objects.using(using).filter(name__in=names).values_list("name", flat=True))
    rows = all_jobs(using=using).filter(task_key__in={task.task_key for task in serial}).open()
    found = (rows.filter(**{f"payload__{SERIAL}": name}).order_by("pk").first() for name in removed)
    return {task.pk for task in found if task is not None}


def _write(task: ScheduledTask, wanted: Wanted) -> Write:
    options = task.payload.get("options", {})
    length = wanted.lease or lease_of(options) or get_settings().LEASE
    timeout = timeout_of(options)
    lease = length if timeout is None else min(length, timeout)
    return Write(
        task=task, triggers=(Trigger.START,), worker=wanted.worker, lease=lease, evidence={"worker": wanted.worker}
    )
