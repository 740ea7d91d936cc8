"""Schedule: one task for an entity, without a run."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from django.db import connections
from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.clocks import is_told, story_now
from timeline.dialects import dialect_of, element_type, narrowed
from timeline.exceptions import InvalidInput, KeyConflict, WrongEntity
from timeline.lifecycle import State
from timeline.models import EntityRef, Event, ScheduledTask, ref_of
from timeline.models.entities import naming
from timeline.payloads import check_data, check_is_dict, check_is_text, check_text, same_json, unfit
from timeline.registry import registry
from timeline.store.insert import as_stored, fields_of, new_row, writers_of
from timeline.store.locks import lock_entity_now, lock_of
from timeline.store.new_rows import columns_of, complete, create_missing, options_of, state_at
from timeline.store.signal_dispatch import announce_times
from timeline.store.transactions import in_transaction
from timeline.timing import check_time

SET_HERE: Final = frozenset({"state", "created_at"})
NAMES: Final = tuple(name for name in fields_of(ScheduledTask) if name not in SET_HERE)
# Half of the columns of most tasks have nothing in them: written so, that is no parameter.
NOTHING: Final = {str: "''", int: "0", bool: "false"}


def insert_at_once(task: ScheduledTask, *, now: datetime | None, using: str) -> bool:
    """
    Insert a new task at the moment when its entity is locked, which sets its state and time of creation. False: nothing was
    written, as the entity or cause is missing, there is such a task, or one statement is not enough (SQLite); several then tell
    the reason.
    """
    connection = connections[using]
    lock = lock_of(task.entity_ref, using)
    if lock is None or not (connection.in_atomic_block or connection.get_autocommit()):
        return False
    sql, keys = lock
    write, values = writers_of(ScheduledTask, using), task.__dict__
    parameters: dict[str, Any] = {"keys": keys, "now": now}
    nothing = []
    for name in NAMES:
        value = values[name]
        if value is None:
            continue
        if value or type(value) not in NOTHING:
            parameters[name] = write[name](value)
        else:
            nothing.append((name, type(value)))
    with connection.cursor() as cursor:
        cursor.execute(_statement(sql, tuple(parameters), tuple(nothing), using), parameters)
        found = cursor.fetchone()
    if found is None:
        return False
    task.state, task.created_at = State(found[0]), found[1].astimezone(UTC)
    as_stored(task, using=using)
    return True


@lru_cache(maxsize=256)
def _statement(lock: str, parameters: tuple[str, ...], nothing: tuple[tuple[str, type], ...], using: str) -> str:
    """Make the text of the statement around ``lock``. ``nothing``: the empty columns, each with its type."""
    fields = fields_of(ScheduledTask)
    values = {
        name: f"%({name})s::{element_type(fields[name], connections[using])}" for name in parameters if name in fields
    }
    values |= {name: NOTHING[kind] for name, kind in nothing}
    sql = narrowed(dialect_of(using).sql("schedule"), parameters)
    columns = ", ".join(f'"{fields[name].column}"' for name in values)
    for word, text in {"lock": lock, "columns": columns, "values": ", ".join(values.values())}.items():
        sql = sql.replace(f"{{{word}}}", text)
    return sql


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
        **columns_of(task_key, declared),
    }
    task = new_row(ScheduledTask, columns)
    if cause is not None:
        task.cause = cause
    complete([task], using=using)
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
    """Refuse an event that was not saved here, or was rolled back. PostgreSQL does not (see KEEPERS in triggers.py)."""
    if cause is not None and not Event.objects.using(using).filter(pk=cause.pk).exists():
        problem = _("%(entity)s is not in the database %(using)r.")
        remedy = _("Save it there first, or name its database.")
        raise InvalidInput("cause", problem, remedy, entity=cause, using=using)


def _known(task: ScheduledTask, using: str) -> ScheduledTask | None:
    """The latest revision of the task that was scheduled with this key; None: it is not there any more."""
    tasks = ScheduledTask.objects.using(using).filter(naming(task.entity_ref))
    same = tasks.filter(run__isnull=True, task_key=task.task_key, occurrence=task.occurrence)
    return same.order_by("revision").last()
