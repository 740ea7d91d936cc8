"""From the words of an address, or of a body, to the entity they name."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db.models import Model

from timeline.models import EntityRef, model_of


def find_entity(ref: EntityRef, *, using: str) -> Model | None:
    """Read an entity named exactly as rows name it; None if there is none."""
    model = model_of(ref.label)
    if model is None or model._meta.label_lower != ref.label:
        return None
    try:
        key = model._meta.pk.to_python(ref.id)
    except ValidationError:
        return None
    if str(key) != ref.id or "\x00" in ref.id:
        return None
    return model._base_manager.using(using).filter(pk=key).first()
