"""Follow an entity: change its runs after a row of a host's model was saved or deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from django.db.models import Model, Q

from timeline import reasons
from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.definition import Definition
from timeline.lifecycle import RunEnd
from timeline.models import EntityRef, ScheduledTask, TimelineRun, ref_of
from timeline.models.entities import naming
from timeline.operations.current import running
from timeline.operations.leaving import cancel_each
from timeline.operations.reconciling import reconcile_locked
from timeline.operations.starting import start_locked
from timeline.operations.waking_others import note_deletion
from timeline.registry import registry
from timeline.runs import end
from timeline.store.beginning import constantly
from timeline.store.isolating import atomic
from timeline.store.locking import in_transaction, lock_entity_now, lock_runs
from timeline.store.telling import TOLD_OF


def entity_created(*, entity: Model | EntityRef, now: datetime | None = None, using: str) -> None:
    """
    Start the runs that an inserted row starts, unless ``TIMELINE["AUTOSTART"]`` is off. If the row cannot be seen, no run
    starts: another receiver of the host may have deleted it by now, or the model's base manager hides it.

    Args:
        entity: The inserted instance, or its reference.
        now: Story time; None: it is read when the entity is locked.
        using: Database alias it was inserted into.
    """
    ref = ref_of(entity)
    definitions = registry.started_by_creation(ref.label)
    if not definitions or not get_settings().AUTOSTART:
        return
    read = any(definition.followed_fields for definition in definitions)
    with in_transaction(using):
        entities, now = lock_entity_now(ref, gone=True, read=read, fresh=False, now=now, using=using)
        start_locked(definitions, entities, begins=constantly(now), now=now, using=using)


def entity_saved(
    *, refs: Iterable[EntityRef], fields: Collection[str] | None, now: datetime | None = None, using: str
) -> None:
    """
    Let the tasks of an entity's open runs follow its anchors and its time zone. One query if it has no such run.

    Args:
        refs: The names of the entity, one for each model of its family that was saved. Its fields are read again from the
            database.
        fields: The fields that were saved; None: all.
        now: Story time; None: it is read when the entity is locked.
        using: Database alias it was saved to.

    Raises:
        DateOutOfRange, NaiveDatetime: naming the field, if the stored value cannot be followed and could not be refused before
            (see ``refuse_misfits``). If the save is in a transaction, it is undone with it. Otherwise it is committed already,
            and the tasks stay as they were.
    """
    runs = _runs_following(refs, fields, using)
    if not runs:
        return
    with in_transaction(using):
        locked = lock_runs([run.pk for run in runs], {run.entity_ref for run in runs}, using=using)
        reconcile_locked(locked.runs, locked.entities, now=now or story_now(using), using=using)


def _runs_following(refs: Iterable[EntityRef], fields: Collection[str] | None, using: str) -> list[TimelineRun]:
    """Open runs whose timelines follow one of the fields. No query if no timeline does."""
    concerned = Q()
    for ref in refs:
        following = registry.following(ref.label)
        if names := [known.name for known in following if fields is None or _follows(known) & set(fields)]:
            concerned |= naming(ref) & Q(timeline__in=names)
    if not concerned:
        return []
    return list(TimelineRun.objects.using(using).open().filter(concerned).only("entity_label", "entity_id"))


def _follows(definition: Definition) -> frozenset[str]:
    return definition.followed_fields | definition.awaited_fields


def entity_deleted(*, ref: EntityRef, now: datetime | None = None, using: str) -> None:
    """
    End the runs of a deleted entity and cancel its open tasks, also ad hoc tasks. Their rows stay as its history.

    Args:
        ref: The name that it had.
        now: Story time; None: it is read when the runs and tasks are locked.
        using: Database alias it was deleted from.
    """
    reason = reasons.DELETED()
    with atomic(using=using, savepoint=False):
        note_deletion(ref, using=using)
        runs = list(TimelineRun.objects.using(using).open().filter(naming(ref)).locked())
        open_tasks = ScheduledTask.objects.using(using).open().filter(naming(ref)).exclude(pk__in=running())
        tasks = list(open_tasks.by_id().locked().only(*TOLD_OF, "slot"))
        if not runs and not tasks:
            return
        now = now or story_now(using)
        end(runs, RunEnd.ENTITY_GONE, reason.text, now=now, using=using)
        cancel_each(tasks, reason=reason, now=now, using=using)
