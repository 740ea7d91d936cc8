"""Reconcile the runs of one entity, if it was changed and no signal saw that."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Model

from timeline.models import EntityRef, TimelineRun, ref_of
from timeline.operations.reconciling import reconcile_locked
from timeline.store.isolating import atomic
from timeline.store.locking import lock_runs
from timeline.store.mirroring import mirror_runs


def reconcile(*, entity: Model | EntityRef, now: datetime, using: str) -> None:
    """
    Reconcile all open runs of an entity, for every model of its family: for example after a bulk update, which no signal sees.

    Args:
        entity: The saved instance, or its reference.
        now: Story time.
        using: Database alias of the entity.

    Raises:
        DateOutOfRange, NaiveDatetime, UnreadableEntity: if the entity gives no usable time; nothing is changed then.
    """
    ref = ref_of(entity)
    with atomic(using=using):
        runs = list(TimelineRun.objects.using(using).open().for_entity(ref).only("entity_label", "entity_id"))
        refs = {ref, *(run.entity_ref for run in runs)}
        locked = lock_runs([run.pk for run in runs], refs, fresh=True, using=using)
        reconcile_locked(locked.runs, locked.entities, now=now, using=using)
        mirror_runs(locked.runs, using=using)
