"""Schedule: one task for an entity, without a run."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.clocks import is_told, story_now
from timeline.confiding import check_data
from timeline.exceptions import InvalidInput, KeyConflict, WrongEntity
from timeline.models import EntityRef, Event, ScheduledTask, ref_of
from timeline.models.entities import naming
from timeline.payloads import check_is_dict, check_is_text, check_text, same_json, unfit
from timeline.registry import registry
from timeline.store.announcing import announce_times
from timeline.store.competing import compete
from timeline.store.creating import create_missing, limited_columns, options_of, state_at
from timeline.store.inserting import new_row
from timeline.store.inserting_at_once import insert_at_once
from timeline.store.locking import in_transaction, lock_entity_now
from timeline.timing import check_time


class Scheduled(NamedTuple):
    """A task, and whether it is new: false if the key was used for the same task before."""

    task: ScheduledTask
    created: bool


def schedule(
    *,
    task_key: str,
    entity: Model | EntityRef | None,
    at: datetime,
    payload: dict[str, Any],
    key: str,
    cause: Event | None,
    now: datetime | None = None,
    using: str,
) -> Scheduled:
    """
    Schedule one task ad hoc. Its guards are checked when it runs; no exit ends it.

    Args:
        task_key: ``<timeline>.<method>`` of a declared task.
        entity: The entity that the task is about; None for a task of a system timeline.
        at: When it is due (aware); in the past: now.
        payload: For the handler, as ``self.task.payload``. A JSON object of 64 KiB at most.
        key: Tells tasks of this kind and entity apart: for each key, one task is scheduled. Empty: each call makes a task. 100
            characters at most.
        cause: The event that caused the task, if any; it has to be in this database.
        now: Story time; None: it is read in the same trip in which the entity is locked.
        using: Database alias of the entity.

    Raises:
        UnknownTask, WrongEntity, InvalidInput, NaiveDatetime, DateOutOfRange, NotPlainJSON, PayloadTooLarge.
        KeyConflict: if the key was used with another time or payload. Nothing is written in any of these cases.
    """
    check_is_text("task_key", task_key)
    definition, declared = registry.task(task_key)
    ref = ref_of(entity, definition.label)
    if ref.label != definition.label:
        wanted = definition.label or _("no entity")
        problem = _("%(task)s is about %(wanted)s, not %(entity)s.")
        raise WrongEntity(problem, _("Give what it is about."), task=task_key, wanted=wanted, entity=ref)
    at = check_time("at", at)
    check_text("key", key, 100)
    check_is_dict("payload", payload)
    check_data("payload", payload)
    if cause is not None and not isinstance(cause, Event):
        raise unfit("cause", cause, _("Give an event, or None."))
    columns = {
        "task_key": task_key,
        "entity_label": ref.label,
        "entity_id": ref.id,
        "payload": payload,
        "nominal_at": at,
        "scheduled_at": at,
        "expires_at": None if declared.options.expires is None else at + declared.options.expires,
        **options_of(declared),
        **limited_columns(task_key, declared),
    }
    task = new_row(ScheduledTask, columns)
    if cause is not None:
        task.cause = cause
    compete([task], using=using)
    task.occurrence = key or str(task.pk)
    if insert_at_once(task, now=story_now(using) if now is None and is_told() else now, using=using):
        announce_times([at], now=task.created_at, using=using)
        return Scheduled(task, True)
    with in_transaction(using):
        _locked, now = lock_entity_now(ref, fresh=False, now=now, using=using)
        _check_cause(cause, using)
        task.state, task.created_at = state_at(at, now), now
        known = None
        while known is None:
            if create_missing([task], using=using):
                return Scheduled(task, True)
            known = _known(task, using)  # None: the task with this key has been pruned since; try again.
    if known.nominal_at != at or not same_json(known.payload, payload):
        raise KeyConflict(task_key, key, _("time or payload"))
    return Scheduled(known, False)


def _check_cause(cause: Event | None, using: str) -> None:
    """
    Refuse an event that was not saved here, or was rolled back. PostgreSQL does not refuse it (see KEEPERS in triggers.py).
    """
    if cause is not None and not Event.objects.using(using).filter(pk=cause.pk).exists():
        problem = _("%(entity)s is not in the database %(using)r.")
        remedy = _("Save it there first, or name its database.")
        raise InvalidInput("cause", problem, remedy, entity=cause, using=using)


def _known(task: ScheduledTask, using: str) -> ScheduledTask | None:
    """The latest revision of the task that was scheduled with this key; None: it is not there any more."""
    tasks = ScheduledTask.objects.using(using).filter(naming(task.entity_ref))
    same = tasks.filter(run__isnull=True, task_key=task.task_key, occurrence=task.occurrence)
    return same.order_by("revision").last()
