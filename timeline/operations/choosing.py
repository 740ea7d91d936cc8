"""Choose rows of a host's model by lookups that somebody typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from django.core.exceptions import EmptyResultSet, FieldError, ValidationError
from django.db import DatabaseError, connections
from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.store.isolating import atomic


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
    except (FieldError, ValidationError, ValueError, TypeError, ArithmeticError) as error:
        raise _misfit(model, error) from None
    return rows


@contextmanager
def blaming_filter(rows: QuerySet[Model], *, using: str) -> Iterator[None]:
    """
    Say of an error of the database in the block that it is the filter's: for the first statement that uses it. Only the
    database finds some mistakes, such as a regular expression that is none.

    Args:
        rows: What the block reads, as ``rows_matching`` gave them.
        using: Database alias.

    Raises:
        InvalidInput: naming ``filter``. An error of the connection, or one of rows without a filter, passes as it is.
    """
    try:
        with atomic(using=using):
            yield
    except (DatabaseError, ValueError, ArithmeticError) as error:
        if not rows.query.where or not connections[using].is_usable():
            raise
        raise _misfit(rows.model, error) from error


def _misfit(model: type[Model], error: Exception) -> InvalidInput:
    problem, remedy = _("does not fit %(model)s (%(error)s)."), _("Give lookups such as created_at__year=2026.")
    return InvalidInput("filter", problem, remedy, model=model._meta.label, error=str(error).strip())
