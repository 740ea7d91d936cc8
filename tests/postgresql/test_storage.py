"""Storage: how PostgreSQL is asked to keep the tables."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.db import connection

from timeline.models import ScheduledTask

pytestmark = pytest.mark.django_db

MIGRATION = import_module("timeline.migrations.0008_vacuum_sooner")


def options():
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = %s", [ScheduledTask._meta.db_table])
        return cursor.fetchone()[0]


class TestVacuum:
    def test_comes_after_a_fiftieth_of_the_tasks(self):
        assert options() == ["autovacuum_vacuum_scale_factor=0.02"]

    def test_is_as_usual_again_when_the_migration_is_taken_back(self):
        with connection.schema_editor(atomic=False) as editor:
            MIGRATION.vacuum_as_usual(None, editor)
            taken_back = options()
            MIGRATION.vacuum_sooner(None, editor)

        assert (taken_back, options()) == (None, ["autovacuum_vacuum_scale_factor=0.02"])
