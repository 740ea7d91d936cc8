"""What the tests of checks share: a database of SQLite with nothing in it."""

from __future__ import annotations

import pytest
from django.db import connection, connections
from django.db.backends.sqlite3.base import DatabaseWrapper


@pytest.fixture
def bare_database(db, tmp_path):
    """Have an alias ``bare`` of an SQLite file without tables: ``bare_database("wal")`` says how its journal is kept."""
    opened = []

    def make(journal, name=tmp_path / "bare.sqlite3"):
        options = {"init_command": f"PRAGMA journal_mode={journal}"}
        settings = {**connection.settings_dict, "NAME": name, "OPTIONS": options}
        connections["bare"] = DatabaseWrapper(settings, "bare")
        opened.append(connections["bare"])

    yield make
    for wrapper in opened:
        wrapper.close()
        del connections["bare"]
