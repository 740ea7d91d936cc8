"""Admit: write down which tasks of a destructive kind may start, and count how many would within a time."""

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

LONGEST: Final = timedelta(days=7)  # That anything is counted.
_UNSTARTED: Final = sorted(OPEN - {State.ACTIVE})


def admitted_among(task_ids: Iterable[UUID], *, using: str) -> set[UUID]:
    """Those that were let in before: whatever became of that attempt, they count once."""
    return set(Admission.objects.using(using).filter(Among(task_ids)).values_list("pk", flat=True))


def admit(task_key: str, times: Mapping[UUID, datetime], *, using: str) -> None:
    """
    Write down that tasks of a kind are let in. Committed when this returns, unless the caller has a transaction.

    Args:
        task_key: Of the kind.
        times: Id of a task → story time from which it counts.
        using: Database alias.
    """
    rows = [Admission(task_id=task_id, task_key=task_key, at=at) for task_id, at in sorted(times.items())]
    Admission.objects.using(using).bulk_create(rows, ignore_conflicts=True)


def let_go(task_key: str, *, at: datetime, made_before: UUID, most: int, using: str) -> int:
    """
    Write down that what was due of a kind when a person released its brake is let in, and is not counted. One statement.

    Args:
        task_key: Of the kind.
        at: Story time of the release.
        made_before: An id that was made then: what was made later has a later one.
        most: So many at most.
        using: Database alias.

    Returns:
        How many they were; fewer than ``most``: no other is left.
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
    """They were not let in after all."""
    Admission.objects.using(using).filter(Among(task_ids)).delete()


def released_at(task_key: str, *, using: str) -> datetime | None:
    """When somebody released last what the brake of a kind had put on hold; None: nobody has."""
    holds = Hold.objects.using(using).by_the_brake(task_key).filter(lifted_at__isnull=False)
    return holds.order_by("-lifted_at").values_list("lifted_at", flat=True).first()


def would_start(
    task_key: str, *, most: int, since: datetime, later_than: datetime | None, now: datetime, using: str
) -> int:
    """
    Count what would start within a time: what was let in since then, and what is due and waits. Not what a guard has called
    off, and not what waits because its entity is on hold.

    Args:
        task_key: Of the kind.
        most: Count no further than one more.
        since: Story time at which the time began.
        later_than: Leave out what was let in by then: a person has released the brake. None: nobody has.
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
    """Delete what nobody counts any more, as of this story time, and what is not to be let in again."""
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
