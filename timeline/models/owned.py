"""Rows that name one of many entities: each row is looked up in the table of the entities, without a list of their keys."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import (
    BigIntegerField,
    Case,
    CharField,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    UUIDField,
    Value,
    When,
)
from django.db.models.functions import Cast, Replace
from django.db.models.lookups import Exact, IsNull, Regex

from timeline.dialects import dialect_of
from timeline.models.among import target_of

_UUID: Final = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_NUMBER: Final = "^(0|-?[1-9][0-9]{0,17})$"


def can_be_looked_up(entities: QuerySet[Any]) -> bool:
    """Whether the database can turn the text in a row into a key of these entities: a number, a UUID, or text."""
    return isinstance(target_of(entities.model._meta.pk), IntegerField | UUIDField | CharField)


def naming_one_of(entities: QuerySet[Any]) -> Q:
    """
    Condition for rows that name one of these entities, with the label of their model.

    Each row is looked up by the primary key of the entities. So PostgreSQL can read rows in the order of their times, and stop
    at the end of the page. For a list, it would read all keys first. For a plain ``EXISTS``, it would build a hash table of the
    keys, once for each part of a union.

    Args:
        entities: Entities of one model, in the database of the rows, with a key that ``can_be_looked_up``.
    """
    one = entities.filter(pk=_key(entities)).order_by().values("pk")[:1]
    return Q(entity_label=entities.model._meta.label_lower) & Q(IsNull(Subquery(one), False))


def _key(entities: QuerySet[Any]) -> Any:
    """
    The text in a row as a key of the entities. A text that no row would have for a key becomes NULL, which fits none.

    A cast alone would fail on PostgreSQL; on SQLite, it would take ``17x`` for 17.
    """
    field, text = target_of(entities.model._meta.pk), OuterRef("entity_id")
    if isinstance(field, CharField):
        return text
    is_uuid = isinstance(field, UUIDField)
    if not dialect_of(entities.db).has_strict_casts:
        number = Cast(text, BigIntegerField())
        return Replace(text, Value("-")) if is_uuid else Case(When(Exact(Cast(number, TextField()), text), then=number))
    kind, looks = (UUIDField(), _UUID) if is_uuid else (BigIntegerField(), _NUMBER)
    return Case(When(Regex(text, Value(looks)), then=Cast(text, kind)), output_field=kind)
