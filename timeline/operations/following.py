"""Follow an entity: what a saved or deleted row of a host's model means for its runs."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import Model

from timeline.conf import get_settings
from timeline.lifecycle import Reason, ReasonCode
from timeline.models import EntityRef, ScheduledTask, TimelineRun, ref_of
from timeline.models.isolating import atomic
from timeline.operations._beginning import constantly
from timeline.operations._current import running
from timeline.operations._locking import in_transaction, lock_batch, lock_runs
from timeline.operations.leaving import cancel_each, mark_ended
from timeline.operations.reconciling import reconcile_locked
from timeline.operations.starting import start_locked
from timeline.registry import registry


def entity_created(*, entity: Model | EntityRef, now: datetime, using: str) -> None:
    """Start the runs that an inserted row starts, unless ``TIMELINE["AUTOSTART"]`` is off."""
    ref = ref_of(entity)
    definitions = registry.started_by_creation(ref.label)
    if not definitions or not get_settings().AUTOSTART:
        return
    with in_transaction(using):
        entities = lock_batch([ref], fresh=False, using=using)
        start_locked(definitions, entities, begins=constantly(now), now=now, using=using)


def entity_saved(*, entity: Model | EntityRef, fields: Collection[str] | None, now: datetime, using: str) -> None:
    """
    Let the rows of an entity's open runs follow its anchors and its time zone.

    Args:
        entity: As saved, or its reference; the fields are read anew from the database.
        fields: Those that were saved; None: all.
        now: Story time.
        using: Database alias it was saved to.

    Raises:
        DateOutOfRange, NaiveDatetime: naming the field, where what is stored cannot be followed and could not be refused
            before (see ``refuse_misfits``). The save is undone with its transaction; one that has none is committed already,
            and the rows stay as they were.
    """
    ref = ref_of(entity)
    definitions = registry.following(ref.label)
    anchored = [known.name for known in definitions if fields is None or known.followed_fields & set(fields)]
    if not anchored:
        return
    runs = TimelineRun.objects.using(using).open().for_entity(ref).filter(timeline__in=anchored)
    run_ids = list(runs.values_list("pk", flat=True))
    if not run_ids:
        return
    with in_transaction(using):
        locked = lock_runs(run_ids, [ref], using=using)
        reconcile_locked(locked.runs, locked.entities, now=now, using=using)


def entity_deleted(*, ref: EntityRef, now: datetime, using: str) -> None:
    """End the runs of a deleted entity and cancel its ad hoc tasks. Its rows stay, as its history."""
    reason = Reason(ReasonCode.ENTITY_GONE, "the entity was deleted")
    with atomic(using=using, savepoint=False):
        runs = TimelineRun.objects.using(using).open().for_entity(ref).locked()
        mark_ended(list(runs), reason=reason, now=now, using=using)
        tasks = ScheduledTask.objects.using(using).open().for_entity(ref).exclude(pk__in=running())
        cancel_each(tasks.by_id().locked().only("state", "attempt"), reason=reason, now=now, using=using)
