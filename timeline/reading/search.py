"""Find entities by words: by the fields that a timeline names, or as the host's own admin finds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from django.core.exceptions import ValidationError
from django.db.models import Count, Min, Q

from timeline.lifecycle import OPEN
from timeline.models import EntityRef, ref_with

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

    from timeline.models.task import ScheduledTaskQuerySet


class AheadOf(NamedTuple):
    """How many open tasks an entity has, and when the next is due."""

    open_tasks: int
    next_at: datetime | None


NOTHING = AheadOf(0, None)


def first_of(found: QuerySet[Model], most: int) -> list[Model]:
    """Read the first so many entities, by their keys. Words that the database cannot compare with a field find nothing."""
    try:
        return list(found.order_by("pk")[:most])
    except (ValueError, ValidationError, OverflowError):
        return []


def refs_of(entities: Sequence[Model]) -> list[EntityRef]:
    """References to entities, by the model with which they were read."""
    return [ref_with(type(entity), entity.pk) for entity in entities]


def ahead_of(refs: Iterable[EntityRef], tasks: ScheduledTaskQuerySet) -> dict[EntityRef, AheadOf]:
    """Count open tasks, in one statement, for entities of which the reader may see any task, even one that has ended."""
    asked: dict[str, list[str]] = {}
    for ref in refs:
        asked.setdefault(ref.label, []).append(ref.id)
    named = Q(pk__in=[])
    for label, ids in asked.items():
        named |= Q(entity_label=label, entity_id__in=ids)
    is_open = Q(state__in=sorted(OPEN))
    counted = (
        tasks.filter(named)
        .order_by()
        .values_list("entity_label", "entity_id")
        .annotate(count=Count("pk", filter=is_open), next_at=Min("scheduled_at", filter=is_open))
    )
    return {EntityRef(label, key): AheadOf(count, at) for label, key, count, at in counted} if asked else {}
