"""The indexes of jobs are made where the table of tasks is."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps

MIGRATIONS = [
    import_module(f"timeline.ojs.migrations.{name}") for name in ("0002_index_of_queues", "0003_index_of_leases")
]


class TasksAreInAnother:
    """A router of a host's that keeps the tables of ``timeline`` in a database of their own."""

    def allow_migrate(self, db, app_label, **_hints):
        """No table of tasks here."""
        return app_label != "timeline"


@pytest.mark.parametrize("indexes", MIGRATIONS, ids=["queues", "leases"])
@pytest.mark.parametrize("name", ["make", "drop"])
def test_makes_none_where_no_tasks_are(settings, indexes, name):
    change, done = getattr(indexes, name), []
    connection = SimpleNamespace(vendor="postgresql", alias="default")
    editor = SimpleNamespace(connection=connection, execute=lambda *given, **_more: done.append(given))

    change(apps, editor)
    assert len(done) == 1

    settings.DATABASE_ROUTERS = [TasksAreInAnother()]
    change(apps, editor)
    assert len(done) == 1
