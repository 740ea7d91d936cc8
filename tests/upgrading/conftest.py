"""A database of a test's own, to migrate there and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections

FRESH = "fresh"


@pytest.fixture
def fresh(django_db_blocker: Any, tmp_path: Any) -> Iterator[str]:
    """Alias of a database that has the tables of the site, and none of ours."""
    default = connections["default"]
    on_postgresql = default.vendor == "postgresql"
    name = f"{default.settings_dict['NAME']}_fresh" if on_postgresql else str(tmp_path / "fresh.sqlite3")
    with django_db_blocker.unblock():
        if on_postgresql:
            _on_server(f'DROP DATABASE IF EXISTS "{name}"', f'CREATE DATABASE "{name}"')
        connections.databases[FRESH] = {**default.settings_dict, "NAME": name}
        try:
            for app in ("accounts", "admin"):
                call_command("migrate", app, database=FRESH, verbosity=0, skip_checks=True)
            yield FRESH
        finally:
            connections[FRESH].close()
            del connections[FRESH], connections.databases[FRESH]
            if on_postgresql:
                _on_server(f'DROP DATABASE "{name}"')


def _on_server(*statements: str) -> None:
    with connections["default"]._nodb_cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
