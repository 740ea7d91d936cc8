"""Plain: fields of which an instance has just the value of the column, so that the database can compare them."""

from __future__ import annotations

from inspect import getattr_static
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Field, Manager, Model
from django.db.models.query_utils import DeferredAttribute
from django.db.models.signals import post_init, pre_init


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
    """
    Find a field whose value is just that of its column.

    Args:
        model: The model.
        name: Name of the field.
        kinds: The classes that the field may have. Subclasses do not count, since they may read another value.

    Returns:
        None: there is no such field, or reading it may do more than that.
    """
    try:
        field = model._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    if type(field) not in kinds or not isinstance(field, Field) or hasattr(field, "from_db_value"):
        return None
    return field if type(getattr_static(model, name, None)) is DeferredAttribute else None
