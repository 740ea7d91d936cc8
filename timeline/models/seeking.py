"""Find tasks by a text that somebody types: the id of an entity, its label and id, or the id of a task."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q

from timeline.models.entities import EntityRef
from timeline.models.kin import about_entity
from timeline.registry import registry


def sought(text: str, *, using: str) -> Q:
    """Condition for tasks: of this entity (``17``, or ``accounts.user 17`` by any model of its family), or with this id."""
    label, _space, key = text.partition(" ")
    labels = sorted({definition.label for definition in registry})
    condition = Q(entity_label__in=labels, entity_id=text)
    if key and "." in label:
        condition |= about_entity(EntityRef(label.lower(), key.strip()), using=using)
    try:
        return condition | Q(pk=UUID(text))
    except ValueError:
        return condition
