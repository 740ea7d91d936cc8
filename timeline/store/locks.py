"""The lock order: entities, then runs, then tasks, each in order of their keys. Every write starts here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from django.db import connections, models
from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.clocks import is_told, story_now
from timeline.dialects import Among, array_of, dialect_of, element_type, fits_in_array, narrowed, target_of
from timeline.exceptions import WrongEntity
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.entities import (
    NO_ENTITY,
    Entities,
    EntityRef,
    by_label,
    by_model,
    family_of,
    keys_of,
    label_of,
    model_of,
    models_of,
    place_of,
)
from timeline.models.facts import RowsToPlan
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
from timeline.store.transactions import LEVEL, check_level, has_to_ask, now_in_fresh_transaction

_LEVEL: Final = "timeline_level"  # What entities are told in passing, and forget at once.


def lock_entities(refs: Iterable[EntityRef], *, using: str, wait: bool = True, fresh: bool = False) -> Entities:
    """
    Lock the rows of entities, also unreadable ones, and read them: one statement for each model, in order of the keys. Others
    can still refer to a locked row, but not change it.

    Parents are locked first, as ``save()`` writes them, and a family's root before all others, if several of its models are
    named. An advisory lock stands for system timelines. SQLite needs no locks, as only one transaction writes at a time.

    Without ``wait``, locked rows are left out, and system timelines are not locked. ``fresh``: what follows has to see what is
    committed now; ``WrongIsolation``: it would not.
    """
    refs, ask = list(refs), fresh and has_to_ask(using)
    if wait and not dialect_of(using).has_one_writer:
        _lock_system(refs, ask, using)
        _lock_roots(refs, using)
    entities = by_model(
        refs,
        lambda model, keys: _locked_and_read(model, keys, using=using, wait=wait, ask=ask),
        among=lambda model, keys: _lock_keys(model, keys, using, wait=wait, ask=ask)[0],
        using=using,
    )
    for entity in entities.values() if ask else ():
        if level := entity.__dict__.pop(_LEVEL, ""):  # Not of one that was read by itself: its keys were asked.
            check_level(level, using=using)
    return entities


class Held(NamedTuple):
    """
    The entities that exist, and when the database's clock says they were locked; None: it was not asked in the same statement.
    """

    refs: set[EntityRef]
    at: datetime | None


def lock_rows(refs: Iterable[EntityRef], *, clock: bool = False, using: str, fresh: bool = False) -> Held:
    """As ``lock_entities``, without reading the fields of the rows; ``clock`` asks the database's clock as well."""
    refs, at, ask = list(refs), None, fresh and has_to_ask(using)
    there: set[EntityRef] = set()
    if not dialect_of(using).has_one_writer:
        _lock_system(refs, ask, using)
        _lock_roots(refs, using)
    for model, keys in models_of(refs):
        found, at = _lock_keys(model, keys, using, clock=clock, ask=ask)
        label, ids = label_of(model), set(map(str, found))
        there.update(ref for ref in refs if ref.id in ids and ref.label == label)
    return Held(there, at)


def try_rows(refs: Iterable[EntityRef], *, using: str) -> set[EntityRef]:
    """
    Take shared locks of entities other than the transaction's own, without waiting, and return those that nobody has locked to
    write. What follows sees what is committed now (``WrongIsolation``: it would not). As nobody waits, these locks need no
    place in the lock order. An ``emit`` for such an entity waits until they have ended.
    """
    refs, ask = list(refs), has_to_ask(using)
    ours: set[EntityRef] = set()
    for model, keys in models_of(refs):
        found, _at = _lock_keys(model, keys, using, wait=False, ask=ask, shared=True)
        label, ids = label_of(model), set(map(str, found))
        ours.update(ref for ref in refs if ref.id in ids and ref.label == label)
    return ours


def _lock_keys(
    model: type[models.Model],
    keys: list[Any],
    using: str,
    *,
    wait: bool = True,
    clock: bool = False,
    ask: bool = False,
    shared: bool = False,
) -> tuple[list[Any], datetime | None]:
    """Lock rows of one model: the keys that the host shows, and the time. ``shared`` needs a ``lock_statement``."""
    if (wait or shared) and (sql := lock_statement(model, using, clock=clock, level=ask, shared=shared)):
        with connections[using].cursor() as cursor:
            cursor.execute(sql, {"keys": array_of(target_of(model._meta.pk), keys, connections[using])})
            found = cursor.fetchall()
        if ask and found:
            check_level(found[-1][-1], using=using)
        return [row[0] for row in found], found[-1][1] if clock and found else None
    found, at = _lock_bare(model, keys, using, wait=wait, ask=ask), None
    if found and _has_its_own_manager(model):
        found = list(_shown(model, found, using).values_list("pk", flat=True))
    return found, at


def _lock_bare(model: type[models.Model], keys: list[Any], using: str, *, wait: bool, ask: bool) -> list[Any]:
    rows = _locked(model, keys, using=using, wait=wait, ask=ask)
    if any(_links(model)):  # What locks parents, too, has to read something of each.
        rows = rows.only(*[known._meta.pk.name for known in family_of(model)])
        pairs = [(entity.pk, getattr(entity, _LEVEL, "")) for entity in rows]
    else:
        pairs = list(rows.values_list("pk", *([_LEVEL] if ask else ())))
    if ask and pairs:
        check_level(pairs[-1][-1], using=using)
    return [pair[0] for pair in pairs]


@lru_cache(maxsize=256)
def lock_statement(
    model: type[models.Model], using: str, *, clock: bool = False, level: bool = False, shared: bool = False
) -> str:
    """
    The statement that locks rows, made once: Django takes as long to make it as the database to execute it. Empty if it cannot
    be made: on SQLite, and for models with parents, a manager of the host's, or a key converted on reading.
    """
    connection, dialect, key = connections[using], dialect_of(using), target_of(model._meta.pk)
    if dialect.has_one_writer or any(_links(model)) or _has_its_own_manager(model):
        return ""
    if not fits_in_array(key) or hasattr(key, "from_db_value"):
        return ""
    asked = {name for name, is_asked in (("clock", clock), ("level", level), ("shared", shared)) if is_asked}
    sql = narrowed(dialect.sql("lock_rows"), asked)
    sql = sql.replace("{type}", element_type(key, connection))
    for word, name in {"table": model._meta.db_table, "key": str(model._meta.pk.column)}.items():
        sql = sql.replace(f"{{{word}}}", connection.ops.quote_name(name).replace("%", "%%"))
    return sql


def lock_of(ref: EntityRef, using: str, *, clock: bool = False, level: bool = False) -> tuple[str, str] | None:
    """The statement that locks one entity, as a part of another statement, and its parameter; None: see ``lock_statement``."""
    model = model_of(ref.label) if dialect_of(using).has_set_statements else None
    keys = keys_of(model, [ref]) if model else []
    if (
        model is None
        or [str(key) for key in keys] != [ref.id]
        or not (sql := lock_statement(model, using, clock=clock, level=level))
    ):
        return None
    return sql, array_of(target_of(model._meta.pk), keys, connections[using])


def _lock_system(refs: Iterable[EntityRef], ask: bool, using: str) -> None:
    if NO_ENTITY in refs:
        with connections[using].cursor() as cursor:
            cursor.execute(dialect_of(using).sql("lock_system"))
            if ask:
                check_level(cursor.fetchone()[1], using=using)


def _lock_roots(refs: Iterable[EntityRef], using: str) -> None:
    """
    If several models of a family are named, lock their rows in its root first, in order of the keys. Otherwise all rows named
    by one child model would be locked before those of another, whatever their keys.
    """
    named: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for label, some in by_label(refs).items():
        named[place_of(label)[0]][label] = {ref.id for ref in some}
    for root in sorted(root for root, ids in named.items() if len(ids) > 1):
        ids = set().union(*named[root].values())
        if named[root].get(root) != ids:
            for model, keys in models_of(EntityRef(root, key) for key in ids):
                _lock_keys(model, keys, using)


def _locked_and_read(
    model: type[models.Model], keys: list[Any], *, using: str, wait: bool, ask: bool
) -> models.QuerySet[models.Model]:
    """Lock rows and read them: in one statement, unless the host reads them in its own way."""
    if not _has_its_own_manager(model):
        return _locked(model, keys, using=using, wait=wait, ask=ask)
    if not dialect_of(using).has_one_writer:
        keys = _lock_bare(model, keys, using, wait=wait, ask=ask)
    return _shown(model, keys, using)


def _has_its_own_manager(model: type[models.Model]) -> bool:
    return type(model._base_manager) is not models.Manager


def _shown(model: type[models.Model], keys: list[Any], using: str) -> models.QuerySet[models.Model]:
    """The rows as the host reads them."""
    return model._base_manager.using(using).filter(Among(keys)).order_by("pk")


def _locked(
    model: type[models.Model], keys: list[Any], *, using: str, wait: bool = True, ask: bool = False
) -> models.QuerySet[models.Model]:
    """Of the bare table: what a manager of the host joins, groups or deduplicates, PostgreSQL does not lock."""
    rows: models.QuerySet[models.Model] = models.QuerySet(model, using=using).filter(Among(keys)).order_by("pk")
    if ask:
        rows = rows.extra(select={_LEVEL: LEVEL})  # noqa: S610 (ours; an annotation takes three times as long to write)
    links = tuple(_links(model))
    return rows.select_for_update(no_key=True, of=(*links, "self") if links else (), skip_locked=not wait)


def _links(model: type[models.Model], prefix: str = "") -> Iterator[str]:
    """Lookups of the parent rows of a model, in the order in which ``save()`` writes them."""
    for parent, link in model._meta.parents.items():
        if link is not None:
            yield from _links(parent, f"{prefix}{link.name}__")
            yield f"{prefix}{link.name}"


@dataclass(frozen=True, slots=True)
class Locked:
    """What is held until the transaction ends: the entities that exist, and the runs in order of their ids."""

    entities: Entities
    runs: list[TimelineRun]


def lock_entity_now(
    ref: EntityRef, *, gone: bool = False, read: bool = False, fresh: bool = True, now: datetime | None, using: str
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
    return _by_run(_locked_to_plan(wanted, {"locked"}, using))


def lock_rows_to_go_on(wanted: RowsToPlan, *, using: str) -> dict[UUID, list[ScheduledTask | RowToPlan]]:
    """As ``lock_rows_to_plan``, but reads little of rows that have ended. If most have, this takes a third of the time."""
    alive = {task.id: task for task in _locked_to_plan(wanted, {"locked", "alive"}, using)}
    return _by_run([alive.get(row.id, row) for row in read_rows_to_plan(wanted, using=using)])


def _locked_to_plan(wanted: RowsToPlan, how: set[str], using: str) -> list[ScheduledTask]:
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
