"""One spelling for each entity: a text that somebody types, or that is in an address, has to be exactly as rows have it."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q

from timeline.exceptions import WrongEntity
from timeline.models.entities import MAX_ID, MAX_LABEL, NO_ENTITY, EntityRef, has_several_columns, model_of, ref_with
from timeline.models.kin import about_entity
from timeline.registry import registry


def exact_ref(label: str, key: str) -> EntityRef | None:
    """The name of an entity from given text, both empty: the system; None: no row names one so (``017``). No query."""
    ref = EntityRef(label, key)
    if ref == NO_ENTITY:
        return ref
    fits = 0 < len(label) <= MAX_LABEL and 0 < len(key) <= MAX_ID
    if not fits or label != label.lower() or not can_be_stored(label + key):
        return None
    model = model_of(label)
    if model is None:
        return ref
    try:
        return ref if not has_several_columns(model) and ref_with(model, key) == ref else None
    except WrongEntity:
        return None


def can_be_stored(text: str) -> bool:
    """Whether all databases can store it: PostgreSQL has no NUL, and half a surrogate pair has no encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


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
