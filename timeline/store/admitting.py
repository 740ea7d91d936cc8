"""Admit: write down which tasks of a destructive kind may start, and count how many would start within a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import connections
from django.db.models import Exists, OuterRef, Q

from timeline.dialects import dialect_of
from timeline.lifecycle import OPEN, ReasonCode, State
from timeline.models import Admission, Hold, ScheduledTask
from timeline.models.among import Among

LONGEST: Final = timedelta(days=7)  # The longest time within which starts are counted.
_UNSTARTED: Final = sorted(OPEN - {State.ACTIVE})


def admitted_among(task_ids: Iterable[UUID], *, using: str) -> set[UUID]:
    """The tasks that were let in before. Each counts once, whatever became of its attempt."""
    return set(Admission.objects.using(using).filter(Among(task_ids)).values_list("pk", flat=True))


def admit(task_key: str, times: Mapping[UUID, datetime], *, using: str) -> None:
    """
    Write down that tasks of a kind are let in. This is committed when the function returns, unless the caller has a
    transaction.

    Args:
        task_key: Key of the kind.
        times: Id of a task → story time from which it counts.
        using: Database alias.
    """
    rows = [Admission(task_id=task_id, task_key=task_key, at=at) for task_id, at in sorted(times.items())]
    Admission.objects.using(using).bulk_create(rows, ignore_conflicts=True)


def let_go(task_key: str, *, at: datetime, made_before: UUID, most: int, using: str) -> int:
    """
    Write down that the tasks of a kind that were due when a person released its brake are let in, without counting them. This
    is one statement.

    Args:
        task_key: Key of the kind.
        at: Story time of the release.
        made_before: An id that was made at the release. Tasks that were made later have greater ids, and are left out.
        most: How many tasks at most.
        using: Database alias.

    Returns:
        The number of tasks; if it is less than ``most``, no other task is left.
    """
    connection = connections[using]
    parameters = {
        "task_key": task_key,
        "at": connection.ops.adapt_datetimefield_value(at),
        "made_before": made_before if connection.features.has_native_uuid_field else made_before.hex,
        "most": most,
    }
    with connection.cursor() as cursor:
        cursor.execute(dialect_of(using).sql("let_go"), parameters)
        return int(cursor.rowcount)


def withdraw(task_ids: Iterable[UUID], *, using: str) -> None:
    """Delete the notes that tasks were let in, since they were not let in after all."""
    Admission.objects.using(using).filter(Among(task_ids)).delete()


def released_at(task_key: str, *, using: str) -> datetime | None:
    """When somebody last released the hold that the brake of a kind had made; None: nobody has."""
    holds = Hold.objects.using(using).by_the_brake(task_key).filter(lifted_at__isnull=False)
    return holds.order_by("-lifted_at").values_list("lifted_at", flat=True).first()


def would_start(
    task_key: str, *, most: int, since: datetime, later_than: datetime | None, now: datetime, using: str
) -> int:
    """
    Count the tasks that would start within a time: those that were let in since its beginning, and those that are due and
    wait. Tasks that a guard has called off do not count, nor do tasks that wait because their entity is on hold.

    Args:
        task_key: Key of the kind.
        most: Count up to one more than this number.
        since: Story time at which the time began.
        later_than: Leave out tasks that were let in by then, since a person has released the brake; None: nobody has.
        now: Story time.
        using: Database alias.
    """
    tasks = ScheduledTask.objects.using(using)
    called_off = tasks.filter(pk=OuterRef("pk"), state=State.CANCELLED, reason_code=ReasonCode.GUARD)
    let_in = Admission.objects.using(using).filter(task_key=task_key, at__gt=since)
    waiting = tasks.filter(task_key=task_key, state__in=_UNSTARTED, scheduled_at__lte=now)
    if later_than is not None:
        let_in = let_in.filter(at__gt=later_than)
    count = let_in.exclude(Exists(called_off))[: most + 1].count()
    if count > most:
        return count
    known = Admission.objects.using(using).filter(pk=OuterRef("pk"))
    return count + waiting.exclude(Exists(known)).not_of_held_entities()[: most + 1 - count].count()


def prune_admissions(before: datetime, *, most: int, using: str) -> None:
    """Delete what is not counted any more at this story time, of tasks that have ended and so are not let in again."""
    rows = Admission.objects.using(using)
    old = rows.filter(at__lt=before - LONGEST).order_by("at", "pk").values_list("at", "pk")
    found = list(old[:most])
    while found:
        keys = [key for _at, key in found]
        states = dict(ScheduledTask.objects.using(using).filter(Among(keys)).values_list("pk", "state"))
        gone = [key for key in keys if states.get(key) not in OPEN]
        rows.filter(Among(gone)).delete()
        at, key = found[-1]
        found = [] if gone else list(old.filter(Q(at__gt=at) | Q(at=at, pk__gt=key))[:most])
