"""What several tables have in common: the columns that name an entity, and conditions of CHECKs."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db import models
from django.db.models import F, Q
from django.db.models.lookups import Exact, GreaterThanOrEqual, LessThan

from timeline.conditions import EarliestOf, IsSet, LatestOf, OneOf
from timeline.lifecycle import State
from timeline.models.entities import MAX_ID, MAX_LABEL, EntityRef
from timeline.timing import EARLIEST, LATEST


class EntityColumns(models.Model):
    """The two columns that name an entity. They are no foreign key: it may be of any model, and rows outlive their entity."""

    entity_label = models.CharField(max_length=MAX_LABEL, blank=True, default="")
    entity_id = models.CharField(max_length=MAX_ID, blank=True, default="")

    class Meta:
        abstract = True

    @property
    def entity_ref(self) -> EntityRef:
        """The name of the entity."""
        return EntityRef(self.entity_label, self.entity_id)


ENTITY_IS_WHOLE = Q(entity_label="", entity_id="") | ~Q(entity_label="") & ~Q(entity_id="")
"""Condition of a CHECK: label and id are both there or both empty."""


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
