"""Runs made in advance for timelines that no clock starts any more, because their declaration was changed meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from timeline import reasons
from timeline.definition import Definition
from timeline.definition.recurring import SLOT_KEY
from timeline.dialects import dialect_of
from timeline.lifecycle import RunEnd
from timeline.models import TimelineRun
from timeline.models.entities import NO_ENTITY
from timeline.operations._calling_off import call_off
from timeline.runs import end
from timeline.store.locking import lock_runs
from timeline.store.slots import hold_waiting


def may_be_left(definition: Definition) -> bool:
    """Whether a clock may have started this timeline once. With ``once`` this cannot be told: any start leaves the same row."""
    return not definition.label and definition.recurring is None and not definition.once


def call_off_left(timelines: Sequence[str], *, now: datetime, using: str) -> int:
    """
    Cancel the waiting runs that a clock began for timelines that it does not start any more. A run stays if one of its tasks
    has begun. If there are no such runs, this is one statement. The caller's transaction holds the lock of system timelines.

    The slot of a cancelled run is free again, in case the clock comes back before its time.

    Returns:
        How many runs were cancelled.
    """
    asked = TimelineRun.objects.using(using).open().filter(entity_label="", entity_id="", once=True)
    asked = asked.filter(timeline__in=timelines, started_by__isnull=True, key__regex=SLOT_KEY)
    left = list(asked.values_list("pk", flat=True))
    if not left:
        return 0
    runs = hold_waiting(lock_runs(left, [NO_ENTITY], using=using).runs, using=using)
    if runs:
        ids = dialect_of(using).list_of(run.pk.hex for run in runs)
        call_off("runs", {"runs": ids}, reason=reasons.NO_CLOCK(), now=now, using=using)
        end(runs, RunEnd.FINISHED, now=now, using=using)
        TimelineRun.objects.using(using).filter(pk__in=[run.pk for run in runs]).update(once=False)
    return len(runs)
