"""Locking entities: first in the lock order, each model's rows in order of their keys."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from django.db import connections, models
from django.db.models import Manager, Model, QuerySet

from timeline.conf import get_settings
from timeline.dialects import Among, array_of, dialect_of, element_type, fits_in_array, narrowed, target_of
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
from timeline.store.transactions import LEVEL, check_level, has_to_ask

_LEVEL: Final = "timeline_level"  # What entities are told in passing, and forget at once.

logger = logging.getLogger("timeline")


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


def surely_gone(missing: Collection[EntityRef], *, using: str) -> set[EntityRef]:
    """
    Those of some missing entities that were deleted. What a manager of the host hides counts as deleted. Nobody knows if
    row-level security hides rows of a table, if the table shows no row at all, or if more are missing together than
    ``TIMELINE["MAX_GONE"]``.
    """
    missing, most = set(missing), get_settings().MAX_GONE
    doubtful: set[EntityRef] = set()
    for model, keys in models_of(missing):
        named = {ref for ref in missing if ref.label == label_of(model)}
        there = rows_there(model, keys, using=using) & named
        if why := _why_nobody_knows(model, using):
            doubtful |= _told(named - there, why)
        if type(model._base_manager) is Manager:  # No manager of the host's hides them, so something else does.
            doubtful |= _told(there, "they are there, and cannot be locked")
    gone = missing - doubtful
    if most is not None and len(gone) > most:
        _told(gone, f"more are missing together than TIMELINE['MAX_GONE'], {most}")
        return set()
    return gone


def rows_there(model: type[Model], keys: Collection[Any], *, using: str) -> set[EntityRef]:
    """The entities of some keys whose rows exist. A manager of the host may hide some, so it is not used."""
    found: Iterable[Any] = QuerySet(model, using=using).filter(Among(keys)).values_list("pk", flat=True)
    return {EntityRef(label_of(model), str(key)) for key in found}


def hides_rows(model: type[Model], *, using: str) -> bool:
    """Whether row-level security hides rows of a model from the role of this connection. PostgreSQL only."""
    if not dialect_of(using).has_settings:
        return False
    quoted = connections[using].ops.quote_name
    with connections[using].cursor() as cursor:
        tables = [quoted(known._meta.db_table) for known in family_of(model)]
        cursor.execute(dialect_of(using).sql("hides_rows"), {"tables": tables})
        [answer] = cursor.fetchone()
    return bool(answer)


def _why_nobody_knows(model: type[Model], using: str) -> str:
    if hides_rows(model, using=using):
        return f"row-level security hides rows of {model._meta.db_table} from this role"
    return "" if QuerySet(model, using=using).exists() else f"{model._meta.db_table} shows no row at all"


def _told(refs: set[EntityRef], why: str) -> set[EntityRef]:
    if refs:
        logger.error(
            "Entities that are not there: %d, %s first. Nothing of them is ended: %s.", len(refs), min(refs), why
        )
    return refs
