"""Mirrors: which machines show their states in columns of the host's models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.models.entities import family_of, label_of, model_of
from timeline.registry import registry

if TYPE_CHECKING:
    from django.db.models import Field, Model

    from timeline.definition import Definition


def mirror_of(definition: Definition | None) -> Field[Any, Any] | None:
    """The field in which a machine shows its state; None: it shows it nowhere."""
    if definition is None or not definition.mirror:
        return None
    model = model_of(definition.label)
    return None if model is None else model._meta.get_field(definition.mirror)  # type: ignore[return-value]


def machines_showing(field: Field[Any, Any]) -> list[Definition]:
    """The machines that show their states in this field, also machines about children of its model."""
    return [known for known in registry.machines() if known.mirror == field.name and _has(known, field)]


def machine_begun_with(model: type[Model], field: Field[Any, Any]) -> Definition | None:
    """The machine that shows its state in this field of rows of this model; None: there is none about these rows."""
    labels = {label_of(known) for known in family_of(model)}
    return next((known for known in machines_showing(field) if known.label in labels), None)


def _has(definition: Definition, field: Field[Any, Any]) -> bool:
    """Whether rows of its entities have the field. Labels are compared, since models in migrations are different classes."""
    model = model_of(definition.label)
    return model is not None and field.model._meta.label_lower in {label_of(known) for known in family_of(model)}
