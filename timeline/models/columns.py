"""What several tables share: columns that name an entity, conditions of CHECKs, and which models are read plainly."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from inspect import getattr_static
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.db.models import F, Field, Manager, Model, Q
from django.db.models.lookups import Exact, GreaterThanOrEqual, LessThan
from django.db.models.query_utils import DeferredAttribute
from django.db.models.signals import post_init, pre_init

from timeline.conditions import EarliestOf, IsSet, LatestOf, OneOf
from timeline.lifecycle import State
from timeline.models.entities import MAX_ID, MAX_LABEL, EntityRef
from timeline.timing import EARLIEST, LATEST

ENTITY_IS_WHOLE = Q(entity_label="", entity_id="") | ~Q(entity_label="") & ~Q(entity_id="")
"""Condition of a CHECK: label and id are both there or both empty."""


class EntityColumns(models.Model):
    """The two columns that name an entity. They are no foreign key: it may be of any model, and rows outlive their entity."""

    entity_label = models.CharField(max_length=MAX_LABEL, blank=True, default="")
    entity_id = models.CharField(max_length=MAX_ID, blank=True, default="")

    class Meta:
        abstract = True

    @property
    def entity_ref(self) -> EntityRef:
        return EntityRef(self.entity_label, self.entity_id)


def in_range(*required: str, optional: Iterable[str] = ()) -> Q:
    """Condition of a CHECK: these times are within 1970–9000; the optional ones may be NULL."""
    condition = Q()
    for field in required:
        condition &= Q(**{f"{field}__gte": EARLIEST, f"{field}__lt": LATEST})
    for field in optional:
        condition &= Q(**{f"{field}__isnull": True}) | Q(**{f"{field}__gte": EARLIEST, f"{field}__lt": LATEST})
    return condition


def is_set_if(column: str, state_in: Collection[State]) -> Q:
    """Condition of a CHECK: the column is set in these states, and NULL in all others."""
    return Q(Exact(IsSet(F(column)), OneOf(F("state"), sorted(state_in))))


def all_in_range(*fields: str) -> Q:
    """The same as ``in_range``, for many times. The first is required."""
    dates = [F(field) for field in fields]
    return Q(GreaterThanOrEqual(EarliestOf(*dates), EARLIEST), LessThan(LatestOf(*dates), LATEST))


def is_read_plainly(model: type[Model]) -> bool:
    """Whether no code of the host's changes how instances of this model are read, or which rows are found."""
    return (
        type(model._base_manager) is Manager
        and getattr_static(type(model), "__call__") is type.__dict__["__call__"]
        and getattr_static(model, "__new__") is object.__dict__["__new__"]
        and getattr_static(model, "__init__") is Model.__init__
        and getattr_static(model, "from_db") is getattr_static(Model, "from_db")
        and getattr_static(model, "__getattribute__") is object.__getattribute__
        and not pre_init.has_listeners(model)
        and not post_init.has_listeners(model)
    )


def is_made_plainly(model: type[Model]) -> bool:
    """Whether an instance has just its columns, as fields of Django itself: it can be made from these without Django."""
    return (
        is_read_plainly(model)
        and getattr_static(model, "__setattr__") is object.__setattr__
        and not model._meta.parents
        and all(
            type(field).__module__.startswith("django.db.models.")
            and isinstance(getattr_static(model, field.attname, None), DeferredAttribute)
            and type(getattr_static(model, field.attname)).__module__.startswith("django.db.models.")
            for field in model._meta.concrete_fields
        )
    )


def plain_column(model: type[Model], name: str, *kinds: type[Field[Any, Any]]) -> Field[Any, Any] | None:
    """A field of one of these classes whose value is just that of its column; else None. Subclasses may read another value."""
    try:
        field = model._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    if type(field) not in kinds or not isinstance(field, Field) or hasattr(field, "from_db_value"):
        return None
    return field if type(getattr_static(model, name, None)) is DeferredAttribute else None
