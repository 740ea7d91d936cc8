"""From the words of an address, or of a body, to the entity they name."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db.models import Model

from timeline.models import EntityRef, exact_ref, model_of


def find_entity(ref: EntityRef, *, using: str) -> Model | None:
    """Read an entity named exactly as rows name it; None if there is none."""
    model = model_of(ref.label)
    if model is None or exact_ref(*ref) is None:
        return None
    return model._base_manager.using(using).filter(pk=ref.id).first()


def can_be_key(model: type[Model], key: str) -> bool:
    """Whether an entity could have this key: a number may be larger than its column holds."""
    field = model._meta.pk
    try:
        field.run_validators(field.to_python(key))
    except ValidationError:
        return False
    return True
