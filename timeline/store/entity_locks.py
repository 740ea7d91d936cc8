"""Locking entities: first in the lock order, each model's rows in order of their keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from django.db import connections, models

from timeline.dialects import dialect_of
from timeline.models.among import Among, array_of, fits_in_array, target_of
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
)
from timeline.models.families import place_of
from timeline.models.statements import element_type, narrowed
from timeline.store.isolating import LEVEL, check_level, has_to_ask

_LEVEL: Final = "timeline_level"  # What entities are told in passing, and forget at once.


def lock_entities(refs: Iterable[EntityRef], *, using: str, wait: bool = True, fresh: bool = False) -> Entities:
    """
    Lock the rows of entities, and read them: one statement for each model, in order of the keys. Entities come first in the
    lock order. Entities that cannot be read are locked, too.

    With this lock, others can refer to the row, but not change it. Rows of parents are locked first, in the order in which
    ``save()`` writes them. If entities are named by several models of a family, the rows of its root come before all others.
    A system timeline is about no row: an advisory lock stands for it. SQLite has no such locks, and needs none: only one
    transaction writes at a time.

    Args:
        refs: The entities.
        using: Database alias.
        wait: Whether to wait for rows that somebody else has locked. If False, these are left out, and no system timeline is
            locked.
        fresh: Whether the statements that follow have to see what is committed now.

    Raises:
        WrongIsolation: if the isolation level of the caller's transaction does not allow ``fresh``.
    """
    refs, ask = list(refs), fresh and has_to_ask(using)
    if wait and not dialect_of(using).has_one_writer:
        _lock_system(refs, ask, using)
        _lock_roots(refs, using)
    entities = by_model(
        refs,
        lambda model, keys: _locked(model, keys, using=using, wait=wait, ask=ask),
        among=lambda model, keys: _lock_keys(model, keys, using, wait=wait, ask=ask)[0],
        using=using,
    )
    for entity in entities.values() if ask else ():
        if level := entity.__dict__.pop(_LEVEL, ""):  # Not of one that was read by itself: its keys were asked.
            check_level(level, using=using)
    return entities


class Held(NamedTuple):
    """
    Rows that were locked without reading them.

    Args:
        refs: The entities that exist.
        at: When they were locked, by the clock of the database; None: the clock was not asked, or could not be asked in the
            same statement.
    """

    refs: set[EntityRef]
    at: datetime | None


def lock_rows(refs: Iterable[EntityRef], *, clock: bool = False, using: str, fresh: bool = False) -> Held:
    """
    Lock the rows of entities as ``lock_entities`` does, without reading their fields.

    Args:
        refs: The entities.
        clock: Whether to ask the clock of the database in the same statement. It is asked for each row.
        using: Database alias.
        fresh: As for ``lock_entities``.

    Raises:
        WrongIsolation: as ``lock_entities``.
    """
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
    Lock entities with a shared lock, without waiting: those that nobody has locked to write. Returns these. Statements that
    follow see what is committed now.

    As nobody waits, these locks need no place in the lock order. They are for entities other than the one that a transaction
    is about. Several transactions can have the shared lock of an entity; an ``emit`` for it waits until they have all ended.

    Raises:
        WrongIsolation: as ``lock_entities``.
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
    """Lock rows of one model. Gives the keys of the rows that exist, and the time. ``shared`` needs a ``lock_statement``."""
    if (wait or shared) and (sql := lock_statement(model, using, clock=clock, level=ask, shared=shared)):
        with connections[using].cursor() as cursor:
            cursor.execute(sql, {"keys": array_of(target_of(model._meta.pk), keys, connections[using])})
            found = cursor.fetchall()
        if ask and found:
            check_level(found[-1][-1], using=using)
        return [row[0] for row in found], found[-1][1] if clock and found else None
    rows = _locked(model, keys, using=using, wait=wait, ask=ask)
    if any(_links(model)):  # What locks parents, too, has to read something of each.
        rows = rows.only(*[known._meta.pk.name for known in family_of(model)])
        pairs = [(entity.pk, getattr(entity, _LEVEL, "")) for entity in rows]
    else:
        pairs = list(rows.values_list("pk", *([_LEVEL] if ask else ())))
    if ask and pairs:
        check_level(pairs[-1][-1], using=using)
    return [pair[0] for pair in pairs], None


@lru_cache(maxsize=256)
def lock_statement(
    model: type[models.Model], using: str, *, clock: bool = False, level: bool = False, shared: bool = False
) -> str:
    """
    The statement that locks rows, as text that is made once: Django makes it for each call, which takes as long as the database
    needs to execute it.

    Empty if it cannot be made: for a model with parents, with a manager of the host's, or with a key that is converted on
    reading; and on SQLite.
    """
    connection, dialect, key = connections[using], dialect_of(using), target_of(model._meta.pk)
    if dialect.has_one_writer or any(_links(model)) or type(model._base_manager) is not models.Manager:
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
    If entities are named by several models of a family, lock their rows in the root of the family first, in order of the keys.

    Otherwise all entities that are named by one child model would be locked before those that are named by another, whatever
    their keys are.
    """
    named: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for label, some in by_label(refs).items():
        named[place_of(label)[0]][label] = {ref.id for ref in some}
    for root in sorted(root for root, ids in named.items() if len(ids) > 1):
        ids = set().union(*named[root].values())
        if named[root].get(root) != ids:
            for model, keys in models_of(EntityRef(root, key) for key in ids):
                _lock_keys(model, keys, using)


def _locked(
    model: type[models.Model], keys: list[Any], *, using: str, wait: bool = True, ask: bool = False
) -> models.QuerySet[models.Model]:
    rows = model._base_manager.using(using).filter(Among(keys)).order_by("pk")
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
