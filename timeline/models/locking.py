"""Locking entities: first in the lock order, each model's rows in order of their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connections, models

from timeline.models.among import Among, array_of, fits_in_array, target_of
from timeline.models.entities import NO_ENTITY, Entities, EntityRef, by_model, family_of, label_of, models_of
from timeline.models.statements import element_type, narrowed, statement


def lock_entities(refs: Iterable[EntityRef], *, using: str, wait: bool = True) -> Entities:
    """
    Lock the rows of entities, and read them: one statement per model, ordered by key. First in the lock order. Those that
    cannot be read are locked, too.

    The lock lets others refer to the row but not change it. Rows of parents are locked too, first, as ``save()`` writes
    them. What a system timeline is about has no row; a lock of its own stands for it. SQLite has neither; its one writer
    stands for both. Who does not want to wait gets those that nobody else has locked, and no lock of a system timeline's.
    """
    refs = list(refs)
    if wait:
        _lock_system(refs, using)
    return by_model(
        refs,
        lambda model, keys: _locked(model, keys, using=using, wait=wait),
        among=lambda model, keys: _lock_keys(model, keys, False, using, wait=wait)[0],
        using=using,
    )


class Held(NamedTuple):
    """
    Rows that are locked, and have not been read.

    Args:
        refs: Those that are there.
        at: When, by the database's own clock; None if it was not asked, or does not tell in passing.
    """

    refs: set[EntityRef]
    at: datetime | None


def lock_rows(refs: Iterable[EntityRef], *, clock: bool = False, using: str) -> Held:
    """
    Lock the rows of entities as ``lock_entities`` does; what they hold is not read.

    Args:
        refs: The entities.
        clock: Whether to ask the database's clock in passing. It is asked for each row.
        using: Database alias.
    """
    refs, at = list(refs), None
    there: set[EntityRef] = set()
    _lock_system(refs, using)
    for model, keys in models_of(refs):
        found, at = _lock_keys(model, keys, clock, using)
        label, ids = label_of(model), set(map(str, found))
        there.update(ref for ref in refs if ref.id in ids and ref.label == label)
    return Held(there, at)


def _lock_keys(
    model: type[models.Model], keys: list[Any], clock: bool, using: str, *, wait: bool = True
) -> tuple[list[Any], datetime | None]:
    """Give the keys of those that are there, and when that was."""
    if wait and (sql := lock_statement(model, using, clock=clock)):
        with connections[using].cursor() as cursor:
            cursor.execute(sql, {"keys": array_of(target_of(model._meta.pk), keys, connections[using])})
            found = cursor.fetchall()
        return [row[0] for row in found], found[-1][1] if clock and found else None
    rows = _locked(model, keys, using=using, wait=wait)
    if any(_links(model)):  # What locks parents, too, has to read something of each.
        own = [known._meta.pk.name for known in family_of(model)]
        return [entity.pk for entity in rows.only(*own)], None
    return list(rows.values_list("pk", flat=True)), None


@lru_cache(maxsize=256)
def lock_statement(model: type[models.Model], using: str, *, clock: bool = False) -> str:
    """
    Write what ``_locked`` asks of ``keys``, once: Django writes it anew each time, which takes as long as the database does.

    Empty where there is more to it: parents, a host's own manager, a key that is read in a way of its own, or SQLite.
    """
    connection, key = connections[using], target_of(model._meta.pk)
    if connection.vendor != "postgresql" or any(_links(model)) or type(model._base_manager) is not models.Manager:
        return ""
    if not fits_in_array(key) or hasattr(key, "from_db_value"):
        return ""
    sql = narrowed(statement("lock_rows", "postgresql"), {"clock"} if clock else ())
    sql = sql.replace("{type}", element_type(key, connection))
    for word, name in {"table": model._meta.db_table, "key": str(model._meta.pk.column)}.items():
        sql = sql.replace(f"{{{word}}}", connection.ops.quote_name(name).replace("%", "%%"))
    return sql


def _lock_system(refs: Iterable[EntityRef], using: str) -> None:
    if NO_ENTITY in refs and connections[using].vendor == "postgresql":
        with connections[using].cursor() as cursor:
            cursor.execute(statement("lock_system", "postgresql"))


def _locked(
    model: type[models.Model], keys: list[Any], *, using: str, wait: bool = True
) -> models.QuerySet[models.Model]:
    rows = model._base_manager.using(using).filter(Among(keys)).order_by("pk")
    links = tuple(_links(model))
    return rows.select_for_update(no_key=True, of=(*links, "self") if links else (), skip_locked=not wait)


def _links(model: type[models.Model], prefix: str = "") -> Iterator[str]:
    """Lookups of the rows of a model's parents, in the order in which ``save()`` writes them."""
    for parent, link in model._meta.parents.items():
        if link is not None:
            yield from _links(parent, f"{prefix}{link.name}__")
            yield f"{prefix}{link.name}"
