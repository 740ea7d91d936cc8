"""Park: a brake puts a kind of destructive tasks on hold, and people are told."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import translation

from timeline.models import Hold, Scope
from timeline.store.alerting import alert_parked
from timeline.store.isolating import atomic


def park(task_key: str, *, most: int, within: timedelta, now: datetime, using: str) -> Hold:
    """
    Put a kind of tasks on hold until a person releases it. If several processes do so at the same moment, one makes the hold
    and tells people; the others find the hold.

    Args:
        task_key: The kind.
        most: How many tasks of it may start within the time, as declared.
        within: The time, as declared.
        now: Story time.
        using: Database alias.
    """
    hold = Hold(scope=Scope.TASK, target=task_key, park_above=most, park_within=within, created_at=now)
    with translation.override("en"):
        hold.reason = hold.why
    with atomic(using=using):
        rows = Hold.objects.using(using)
        rows.bulk_create([hold], ignore_conflicts=True)
        # Locked: somebody who releases it now is waited for, or waits until the caller's transaction ends.
        found = rows.open().by_the_brake(task_key).select_for_update(no_key=True).first()
        if found is not None and found.pk == hold.pk:
            alert_parked(hold, now=now, using=using)
    return found or hold
