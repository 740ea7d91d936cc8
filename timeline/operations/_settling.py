"""Settle: write how tasks ended, and what follows from it, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from timeline.lifecycle import FINAL
from timeline.models import ScheduledTask
from timeline.operations._locking import lock_runs
from timeline.operations._transition import Write, apply
from timeline.operations.reconciling import reconcile_locked


def settle(writes: Sequence[Write], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Write endings, then reconcile the runs they belong to: follow-ups get their rows, a run with nothing left is finished.

    Entities and runs are locked before the tasks are written; a run that has ended meanwhile is left as it is.

    Args:
        writes: Any number; those that end nothing are just written.
        now: Story time.
        using: Database alias.

    Returns:
        The tasks whose guard held, in the order given; the others were changed by somebody else.
    """
    ending = [write.task for write in writes if write.states[-1] in FINAL and write.task.run_id is not None]
    with transaction.atomic(using=using):
        refs = [task.entity_ref for task in ending]
        locked = lock_runs((task.run_id for task in ending if task.run_id), refs, using=using)
        done = apply(writes, now=now, using=using)
        settled = {task.run_id for task in done}
        runs = [run for run in locked.runs if run.pk in settled]
        reconcile_locked(runs, locked.entities, now=now, using=using, lenient=True)
    return done
