"""Rows that name one of many entities: looked up row by row in the entities' own table, not by a list of their keys."""

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
    """Whether their key is of a kind that a row's text can be read as by the database: a number, a UUID, or text."""
    return isinstance(target_of(entities.model._meta.pk), IntegerField | UUIDField | CharField)


def naming_one_of(entities: QuerySet[Any]) -> Q:
    """
    Condition on rows that name one of these entities by the label of their model.

    Each row is looked up by the primary key of the entities. So PostgreSQL can walk rows in the order of their time, and ends
    with the page: a list would have it read all keys first, and a plain ``EXISTS`` hash them, once for each part of a union.

    Args:
        entities: Of one model, in the database of the rows, with a key that ``can_be_looked_up``.
    """
    one = entities.filter(pk=_key(entities)).order_by().values("pk")[:1]
    return Q(entity_label=entities.model._meta.label_lower) & Q(IsNull(Subquery(one), False))


def _key(entities: QuerySet[Any]) -> Any:
    """
    A row's text as the entities' key. What is no key as rows write it is NULL, which names nothing.

    A cast alone would fail on PostgreSQL, and on SQLite take ``17x`` for 17.
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
