"""What rows have in common: the columns that name an entity, and conditions of their CHECKs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.db import models
from django.db.models import F, Func, Q, Transform
from django.db.models.functions import Coalesce, Greatest, Least
from django.db.models.lookups import Exact, GreaterThanOrEqual, In, LessThan

from timeline.lifecycle import State
from timeline.models.entities import MAX_ID, MAX_LABEL, EntityRef
from timeline.models.statements import as_array
from timeline.timing import EARLIEST, LATEST


class EntityColumns(models.Model):
    """The two columns that name an entity, with no foreign key: any model, and rows outlive it."""

    entity_label = models.CharField(max_length=MAX_LABEL, blank=True, default="")
    entity_id = models.CharField(max_length=MAX_ID, blank=True, default="")

    class Meta:
        abstract = True

    @property
    def entity_ref(self) -> EntityRef:
        """Names the entity."""
        return EntityRef(self.entity_label, self.entity_id)


ENTITY_IS_WHOLE = Q(entity_label="", entity_id="") | ~Q(entity_label="") & ~Q(entity_id="")
"""Condition of a CHECK: label and id are both there or both empty."""


def in_range(*required: str, optional: Iterable[str] = ()) -> Q:
    """Condition of a CHECK: these dates are within 1970–9000; the optional ones may be NULL."""
    condition = Q()
    for field in required:
        condition &= Q(**{f"{field}__gte": EARLIEST, f"{field}__lt": LATEST})
    for field in optional:
        condition &= Q(**{f"{field}__isnull": True}) | Q(**{f"{field}__gte": EARLIEST, f"{field}__lt": LATEST})
    return condition


# PostgreSQL reads the conditions of a table's CHECKs anew for each statement that writes to it, and takes longer for long ones
# than for the write of a row. So those of tasks, which are written most, are short ones.


class OneOf(In):
    """Whether a text is one of several: on PostgreSQL with these as one array, of which nothing is to be made at each write."""

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        """Write it."""
        text, parameters = self.process_lhs(compiler, connection)
        return f"{text} = ANY (%s::varchar[])", [*parameters, as_array(list(self.rhs))]


class IsSet(Transform):
    """Whether a column is not NULL. It can be compared with something, and be asked of a value, which ``IsNull`` cannot."""

    template = "(%(expressions)s IS NOT NULL)"
    output_field = models.BooleanField()


class _SkipsNull(Func):
    """As PostgreSQL has it: of what is NULL, the first stands in."""

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Write it."""
        first, *others = self.get_source_expressions()
        whole = self.copy()
        whole.set_source_expressions([first, *(Coalesce(other, first) for other in others)])
        return super(_SkipsNull, whole).as_sqlite(compiler, connection, **context)


class EarliestOf(_SkipsNull, Least):
    """The first of several dates; the first one named is never NULL."""


class LatestOf(_SkipsNull, Greatest):
    """The last of several dates; the first one named is never NULL."""


def is_set_if(column: str, state_in: Collection[State]) -> Q:
    """Condition of a CHECK: the column is set in these states, and NULL in all others."""
    return Q(Exact(IsSet(F(column)), OneOf(F("state"), sorted(state_in))))


def all_in_range(*fields: str) -> Q:
    """The same as ``in_range``, for many dates. The first is required."""
    dates = [F(field) for field in fields]
    return Q(GreaterThanOrEqual(EarliestOf(*dates), EARLIEST), LessThan(LatestOf(*dates), LATEST))
