"""Whether ``migrate`` has made the tables that a check reads. It runs the checks before it makes them."""

from __future__ import annotations

from django.db import connections
from django.db.models import Model


def are_made(alias: str, *models: type[Model]) -> bool:
    """Whether a database has the tables of some models, with all their columns."""
    connection = connections[alias]
    introspection = connection.introspection
    with connection.cursor() as cursor:
        tables = introspection.table_names(cursor)
        for meta in (model._meta for model in models):
            if meta.db_table not in tables:
                return False
            there = {column.name for column in introspection.get_table_description(cursor, meta.db_table)}
            if not there.issuperset(field.column for field in meta.local_concrete_fields):
                return False
    return True
