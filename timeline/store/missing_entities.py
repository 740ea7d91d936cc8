"""Entities that are not there: were they deleted, or are they only not seen?"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Any

from django.db import connections
from django.db.models import Manager, Model, QuerySet

from timeline.conf import get_settings
from timeline.dialects import Among, dialect_of
from timeline.models.entities import (
    EntityRef,
    family_of,
    label_of,
    models_of,
)

logger = logging.getLogger("timeline")


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
