"""Takes guards off tables, to see what then happens."""

from __future__ import annotations

from django.db import connection

from timeline.models.triggers import TRIGGERS


def drop_trigger(name: str) -> None:
    """Take one of the guards off its table."""
    of_table = f" ON {TRIGGERS[name]}" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER timeline_{name}{of_table}")
