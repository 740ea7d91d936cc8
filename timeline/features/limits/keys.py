"""Keys of limits that depend on a field of the entity; and the place of a limit that a next revision takes over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from timeline.definition import Task
from timeline.features.limits.declaration import HALF_DONE, Limit, limit_of
from timeline.lifecycle import FINAL, ReasonCode, State
from timeline.models import EntityRef, ScheduledTask, model_of
from timeline.models.entities import load_entities
from timeline.planning import TaskRow
from timeline.registry import registry
from timeline.store.changes import Write

_SUPERSEDED: Final = (State.CANCELLED, ReasonCode.SUPERSEDED)


def compete(tasks: Sequence[ScheduledTask], *, using: str) -> None:
    """Set the ``limit_key`` of new rows that have none, if a field of the entity decides. No statement if none needs one."""
    asked = [task for task in tasks if task.held_until and not task.limit_key]
    keys = keys_of([(task.entity_ref, task.task_key) for task in asked], using=using)
    for task, key in zip(asked, keys, strict=True):
        task.limit_key = key


def keys_of(rows: Sequence[tuple[EntityRef, str]], *, using: str) -> list[str]:
    """Keys of rows whose limit is by a field of the entity. Entities are read as they are now, one statement for each model."""
    if not rows:
        return []
    entities = load_entities({ref for ref, _task_key in rows}, using=using)
    return [_key_of(ref, task_key, entities) for ref, task_key in rows]


def _key_of(ref: EntityRef, task_key: str, entities: Mapping[EntityRef, Any]) -> str:
    limit, entity, model = _limit_of(task_key), entities.get(ref), model_of(ref.label)
    field = model._meta.get_field(limit.by) if limit is not None and limit.by and model is not None else None
    value = getattr(entity, field.attname, None) if entity is not None and field is not None else None  # type: ignore[union-attr]
    return limit.key_of(task_key, value) if limit is not None else task_key


def _limit_of(task_key: str) -> Limit | None:
    return limit_of(registry.task(task_key)[1])


def handed_on(task: ScheduledTask) -> dict[str, Any]:
    """
    The columns by which the next revision takes over the place of a task whose work is half done or may be; otherwise empty.
    The caller has to write that the task gives the place up, before it inserts the new row.
    """
    was_under_way = task.state == State.ACTIVE or task.state in FINAL
    is_half_done = was_under_way or task.held_until.endswith(HALF_DONE)
    if not task.slot or task.held_until == "attempt" or not is_half_done:
        return {}
    held_until = f"{held_alone(task)}{HALF_DONE}"
    return {"limit_key": task.limit_key, "slot": task.slot, "held_until": held_until}


def held_alone(task: ScheduledTask) -> str:
    """Until when a task holds its place, without the mark for work that is half done."""
    return task.held_until.removesuffix(HALF_DONE)


def hand_on(
    writes: Sequence[Write], tasks: Iterable[ScheduledTask], *, earlier: Iterable[TaskRow] = (), using: str
) -> list[Write]:
    """
    Let new revisions take over places of the tasks before them, and give the writes by which these give them up.

    Those tasks are cancelled in their favour now; or were before, because what they follow had to run again first: these are
    among ``earlier``, which the caller has locked. Nothing is written or inserted yet.
    """
    places = {write.task.pk: handed_on(write.task) for write in writes if write.task.slot}
    whole = [row for row in earlier if isinstance(row, ScheduledTask)]  # Other rows hold no place.
    closed = {row.pk: row for row in whole if row.slot and (row.state, row.reason_code) == _SUPERSEDED}
    places |= {pk: handed_on(row) for pk, row in closed.items()}
    taken = set()
    for task in tasks:
        if task.previous_id is not None and (columns := places.get(task.previous_id)):
            taken.add(task.previous_id)
            for name, value in columns.items():
                setattr(task, name, value)
    give_up_places([row for pk, row in closed.items() if pk in taken], using=using)
    return [replace(write, slot=0) if write.task.id in taken else write for write in writes]


def give_up_places(tasks: Iterable[ScheduledTask], *, using: str) -> None:
    """Let rows that have ended, and still keep their places, give the places up, so that later revisions can take them over."""
    closed = [task.pk for task in tasks if task.slot]
    if closed:
        ScheduledTask.objects.using(using).filter(pk__in=closed, slot__gt=0).update(slot=0)


def without_places(writes: Sequence[Write]) -> Sequence[Write]:
    """
    Let tasks give up their places if their handler was not entered, now or before, nor that of a revision before them. Else a
    task that only looked and rests would hold up the very tasks that it waits for.
    """
    return [replace(write, slot=0) if _gives_up(write) else write for write in writes]


def _gives_up(write: Write) -> bool:
    return bool(write.task.slot) and not write.entered and not write.task.held_until.endswith(HALF_DONE)


def columns_of(task_key: str, declared: Task[Any, ..., Any]) -> dict[str, Any]:
    """
    The columns that say which limit a task has; empty: none. If a field of the entity decides, ``compete`` sets the key later.
    """
    limit = limit_of(declared)
    if limit is None:
        return {}
    return {"limit_key": "" if limit.by else limit.key_of(task_key), "held_until": limit.held_until}


def inherited(task: ScheduledTask, *, is_known: bool) -> dict[str, Any]:
    """The columns that a next revision has from the row before: the limit if no declaration tells it, and a place."""
    columns = {} if is_known else {"limit_key": task.limit_key, "held_until": held_alone(task)}
    return columns | handed_on(task)


def fill(rows: Sequence[tuple[EntityRef, dict[str, Any]]], *, using: str) -> dict[str, list[Any]]:
    """The columns of many new rows: what they compete for, and until when they hold it."""
    columns = {name: [planned.get(name, "") for _ref, planned in rows] for name in ("limit_key", "held_until")}
    places = [place for place, (key, until) in enumerate(zip(*columns.values(), strict=True)) if until and not key]
    asked = [(rows[place][0], rows[place][1]["task_key"]) for place in places]
    for place, key in zip(places, keys_of(asked, using=using), strict=True):
        columns["limit_key"][place] = key
    return columns
