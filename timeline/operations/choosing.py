"""Choose rows of a host's model by lookups that somebody typed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.core.exceptions import EmptyResultSet, FieldError, ValidationError
from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput


def rows_matching(model: type[Model], filters: Mapping[str, Any], *, using: str) -> QuerySet[Model]:
    """
    Filter the rows by all lookups; no row is read here.

    Args:
        model: A model of the host.
        filters: As for ``filter()``: lookup → value.
        using: Database alias.

    Raises:
        InvalidInput: naming ``filter``, if a lookup does not fit the model.
    """
    rows: QuerySet[Model] = QuerySet(model, using=using)
    try:
        rows = rows.filter(**filters)
        with suppress(EmptyResultSet):
            rows.query.get_compiler(using).as_sql()  # Some lookups check their value only here.
    except (FieldError, ValidationError, ValueError, TypeError) as error:
        problem, remedy = _("does not fit %(model)s (%(error)s)."), _("Give lookups such as created_at__year=2026.")
        raise InvalidInput("filter", problem, remedy, model=model._meta.label, error=str(error)) from None
    return rows
