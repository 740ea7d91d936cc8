"""A database of a test's own, to migrate there and back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections

FRESH = "fresh"


@pytest.fixture(scope="session")
def _site(django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Name of a database that has the tables of the site, and none of ours: copied for each test."""
    on_postgresql = connections["default"].vendor == "postgresql"
    name = f"{connections['default'].settings_dict['NAME']}_site"
    name = name if on_postgresql else str(tmp_path_factory.mktemp("site") / "site.sqlite3")
    with django_db_blocker.unblock():
        if on_postgresql:
            _on_server(f'DROP DATABASE IF EXISTS "{name}"', f'CREATE DATABASE "{name}"')
        _connect(name)
        try:
            for app in ("accounts", "admin"):
                call_command("migrate", app, database=FRESH, verbosity=0, skip_checks=True)
        finally:
            _disconnect()
    yield name
    if on_postgresql:
        with django_db_blocker.unblock():
            _on_server(f'DROP DATABASE "{name}"')


@pytest.fixture
def fresh(_site: str, django_db_blocker: Any, tmp_path: Any) -> Iterator[str]:
    """Alias of a database that has the tables of the site, and none of ours."""
    on_postgresql = connections["default"].vendor == "postgresql"
    name = f"{_site}_fresh" if on_postgresql else str(tmp_path / "fresh.sqlite3")
    with django_db_blocker.unblock():
        if on_postgresql:
            _on_server(f'DROP DATABASE IF EXISTS "{name}"', f'CREATE DATABASE "{name}" TEMPLATE "{_site}"')
        else:
            shutil.copyfile(_site, name)
        _connect(name)
        try:
            yield FRESH
        finally:
            _disconnect()
            if on_postgresql:
                _on_server(f'DROP DATABASE "{name}"')


def _connect(name: str) -> None:
    connections.databases[FRESH] = {**connections["default"].settings_dict, "NAME": name}


def _disconnect() -> None:
    connections[FRESH].close()
    del connections[FRESH], connections.databases[FRESH]


def _on_server(*statements: str) -> None:
    with connections["default"]._nodb_cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
