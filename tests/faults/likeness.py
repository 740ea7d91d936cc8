"""All that a database and its journals hold, but for ids and moments: what is alike in this goes on alike."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

from django.db.models import DateTimeField, Field, UUIDField

from tests.faults import world
from tests.faults.seeing import TABLES, Seen

_ID: Final = re.compile("[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def likeness(seen: Seen) -> tuple[Any, ...]:
    """What was seen, row by row. A moment or an id counts as being there or not; equal ones count as equal nowhere else."""
    tables = [
        Counter(
            _ID.sub("", repr([_plain(field, value) for field, value in zip(fields, row, strict=True)]))
            for row in seen[model]
        )
        for model in TABLES
        for fields in [model._meta.concrete_fields]
    ]
    journals = (sorted(Counter(journal).values()) for journal in (world.ENTERED, world.CALLED))
    return (*(sorted(table.items()) for table in tables), *journals, sorted(world.FAILING), repr(world.picture(seen)))


def _plain(field: Field[Any, Any], value: object) -> object:
    passing = field.primary_key or field.is_relation or isinstance(field, UUIDField | DateTimeField)
    return (value is None) if passing or field.name in {"entity_id", "seconds", "worker"} else value
