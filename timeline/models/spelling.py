"""One spelling for each entity: a text that somebody types, or that is in an address, has to be exactly as rows have it."""

from __future__ import annotations

from timeline.exceptions import WrongEntity
from timeline.models.entities import MAX_ID, MAX_LABEL, NO_ENTITY, EntityRef, has_several_columns, model_of, ref_with


def exact_ref(label: str, key: str) -> EntityRef | None:
    """
    The name of an entity from text that somebody gave; None: no row names an entity like that.

    ``17`` is the key of an order; ``017`` and ``١٧`` are not: each entity has one address. If the model is not installed (any
    more), the text is taken as it is, since the rows still exist. This makes no query.

    Args:
        label: Label of the model, in small letters; empty for the system.
        key: The same as ``str(pk)``; empty for the system.
    """
    ref = EntityRef(label, key)
    if ref == NO_ENTITY:
        return ref
    fits = 0 < len(label) <= MAX_LABEL and 0 < len(key) <= MAX_ID
    if not fits or label != label.lower() or not _can_be_stored(label + key):
        return None
    model = model_of(label)
    if model is None:
        return ref
    try:
        return ref if not has_several_columns(model) and ref_with(model, key) == ref else None
    except WrongEntity:
        return None


def _can_be_stored(text: str) -> bool:
    """Whether databases can store it: PostgreSQL has no NUL, and half a surrogate pair has no encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text
