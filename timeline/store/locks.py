"""The lock order: entities, then runs, then tasks, each in order of their keys. Every write starts here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import connections
from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.clocks import is_told, story_now
from timeline.dialects import Among, dialect_of, narrowed
from timeline.exceptions import WrongEntity
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import Entities
from timeline.models.facts import RowsToPlan
from timeline.store.entity_locks import lock_entities, lock_rows
from timeline.store.returned_rows import (
    COLUMNS,
    FIELDS,
    RawRow,
    as_tasks,
    cursor_for_rows,
    read_models,
    rows_of,
    values_of,
)
from timeline.store.transactions import now_in_fresh_transaction


@dataclass(frozen=True, slots=True)
class Locked:
    """What is held until the transaction ends: the entities that exist, and the runs in order of their ids."""

    entities: Entities
    runs: list[TimelineRun]


def lock_entity_now(
    ref: EntityRef,
    *,
    gone: bool = False,
    read: bool = False,
    fresh: bool = True,
    now: datetime | None,
    using: str,
) -> tuple[dict[EntityRef, Model | None], datetime]:
    """
    Lock one entity, and read story time if it is not given: one trip, unless its fields are needed (``read``).

    ``gone`` leaves a missing entity out instead of an error. ``fresh``: what follows has to see what is committed now.

    Raises:
        WrongEntity: if it is not in this database.
        UnreadableEntity: if it is to be read and cannot be.
        WrongIsolation: if the isolation level does not allow ``fresh``.
    """
    if read and now is None and not is_told():
        entities = lock_batch([ref], gone=gone, fresh=False, using=using)
        return entities, now_in_fresh_transaction(using=using) if fresh else story_now(using)
    if now is not None or read or is_told() or not ref.label:
        return lock_batch([ref], gone=gone, read=read, fresh=fresh, using=using), now or story_now(using)
    held = lock_rows([ref], clock=True, fresh=fresh, using=using)
    if not gone and ref not in held.refs:
        raise missing(ref, using)
    return dict.fromkeys(held.refs), held.at.astimezone(UTC) if held.at else story_now(using)


def lock_batch(
    refs: Sequence[EntityRef], *, gone: bool = False, read: bool = True, fresh: bool = True, using: str
) -> dict[EntityRef, Model | None]:
    """
    Lock entities, each given once, as ``lock_entity_now`` does. Gives those that exist, in their order. The value is None if
    the entity is not read, and for the system. Errors name the first entity concerned.
    """
    if read:
        entities = lock_entities(refs, fresh=fresh, using=using)
        for unreadable in entities.unreadable.values():
            raise unreadable
        found: dict[EntityRef, Model | None] = dict(entities)
    else:
        found = dict.fromkeys(lock_rows(refs, fresh=fresh, using=using).refs)
    for ref in refs:
        if ref.label and ref not in found and not gone:
            raise missing(ref, using)
    return {ref: found.get(ref) for ref in refs if ref in found or not ref.label}


def missing(ref: EntityRef, using: str) -> WrongEntity:
    """The error for an entity that does not exist."""
    problem = _("%(entity)s is not in the database %(using)r.")
    return WrongEntity(problem, _("Save it there first, or name its database."), entity=ref, using=using)


def lock_runs(
    run_ids: Iterable[UUID], refs: Iterable[EntityRef], *, using: str, wait: bool = True, fresh: bool = False
) -> Locked:
    """Lock entities and then runs, those that are there. ``wait``, ``fresh`` and errors: as for ``lock_entities``."""
    entities = lock_entities(refs, using=using, wait=wait, fresh=fresh)
    wanted = sorted(set(run_ids))
    found = TimelineRun.objects.using(using).filter(Among(wanted)).locked(skip_locked=not wait)
    return Locked(entities, read_models(found) if wanted else [])


def lock_tasks(task_ids: Sequence[UUID], *, using: str) -> list[ScheduledTask]:
    """Lock tasks, their entities and runs first; gives them in order, with their runs. ``DoesNotExist``: one is not there."""
    return lock_tasks_with_runs(task_ids, using=using)[0]


def lock_tasks_with_runs(task_ids: Sequence[UUID], *, using: str) -> tuple[list[ScheduledTask], Locked]:
    """Lock tasks as ``lock_tasks`` does; also give the entities and runs that were locked before them."""
    seen = _read("read_tasks", "id, run_id, entity_label, entity_id", task_ids, using).values()
    refs = (EntityRef(row["entity_label"], row["entity_id"]) for row in seen)
    locked = lock_runs((row["run_id"] for row in seen if row["run_id"] is not None), refs, fresh=True, using=using)
    held = _with_runs(_read("lock_tasks", COLUMNS, task_ids, using), locked, using)
    if missing := [str(task_id) for task_id in task_ids if task_id not in held]:
        raise ScheduledTask.DoesNotExist(f"There is no task {', '.join(missing)} in the database {using!r}.")
    return [held[task_id] for task_id in dict.fromkeys(task_ids)], locked


def _with_runs(rows: dict[UUID, RawRow], locked: Locked, using: str) -> dict[UUID, ScheduledTask]:
    runs = {run.pk: run for run in locked.runs}
    tasks = {task.id: task for task in as_tasks(rows.values(), using)}
    for task in tasks.values():
        task.run = runs[task.run_id] if task.run_id else None
    return tasks


def _read(verb: str, columns: str, task_ids: Iterable[UUID], using: str) -> dict[UUID, RawRow]:
    connection, dialect = connections[using], dialect_of(using)
    ids = dialect.list_of(task_id.hex for task_id in task_ids)
    with cursor_for_rows(connection) as cursor:
        cursor.execute(dialect.sql(verb).replace("{columns}", columns), {"ids": ids})
        return rows_of(cursor, connection)


def lock_rows_to_plan(wanted: RowsToPlan, *, using: str) -> dict[UUID, list[ScheduledTask]]:
    """Lock the rows from which locked runs are planned, and read them: id of a run → its rows, if it has any."""
    return _by_run(_locked(wanted, {"locked"}, using))


def lock_rows_to_go_on(wanted: RowsToPlan, *, using: str) -> dict[UUID, list[ScheduledTask | RowToPlan]]:
    """As ``lock_rows_to_plan``, but reads little of rows that have ended. If most have, this takes a third of the time."""
    alive = {task.id: task for task in _locked(wanted, {"locked", "alive"}, using)}
    return _by_run([alive.get(row.id, row) for row in read_rows_to_plan(wanted, using=using)])


def _locked(wanted: RowsToPlan, how: set[str], using: str) -> list[ScheduledTask]:
    connection, columns = connections[using], tuple(FIELDS)
    with _found(wanted, columns, how, using) as cursor:
        return as_tasks(rows_of(cursor, connection, columns).values(), using) if cursor else []


def _by_run(rows: Iterable[Row]) -> dict[UUID, list[Row]]:
    found: dict[UUID, list[Row]] = {}
    for row in rows:
        if row.run_id is not None:
            found.setdefault(row.run_id, []).append(row)
    return found


@dataclass(slots=True)
class RowToPlan:
    """The columns of a task that a plan reads. Making it takes a tenth of the time of an instance of the model."""

    id: UUID
    run_id: UUID | None
    task_key: str
    occurrence: str
    state: str
    revision: int
    nominal_at: datetime
    scheduled_at: datetime
    planned_at: datetime | None
    anchor: str
    anchor_value: datetime | None
    anchor_date: date | None
    finished_at: datetime | None
    reason_code: str

    @property
    def task_name(self) -> str:
        """Name of the method of the task."""
        return self.task_key.partition(".")[2]


Row = TypeVar("Row", bound=ScheduledTask | RowToPlan)
READ: Final = tuple(column.name for column in fields(RowToPlan))


def read_rows_to_plan(wanted: RowsToPlan, *, using: str) -> list[RowToPlan]:
    """Read the rows from which runs are planned."""
    with _found(wanted, READ, set(), using) as cursor:
        return [RowToPlan(*row) for row in values_of(cursor, connections[using], READ)] if cursor else []


@contextmanager
def _found(wanted: RowsToPlan, columns: tuple[str, ...], how: set[str], using: str) -> Iterator[Any]:
    """Open a cursor that has these columns of the rows; None: no run is asked for."""
    if not wanted.whole and not wanted.in_states:
        yield None
        return
    connection, dialect = connections[using], dialect_of(using)
    names = {name for name in ("whole", "in_states", "others", "visits") if getattr(wanted, name)}
    runs = {name: dialect.list_of(key.hex for key in getattr(wanted, name)) for name in ("whole", "in_states")}
    keys = {name: dialect.list_of(getattr(wanted, name)) for name in ("others", "bound", "visits")}
    with cursor_for_rows(connection) as cursor:
        cursor.execute(statement_of_rows(using, columns, frozenset(names | how)), runs | keys)
        yield cursor


@cache
def statement_of_rows(using: str, columns: tuple[str, ...], names: frozenset[str]) -> str:
    """The statement, with these columns, and with the optional lines of these names."""
    read = ", ".join(str(FIELDS[name].column) for name in columns)
    return narrowed(dialect_of(using).sql("rows_to_plan").replace("{columns}", read), names)
