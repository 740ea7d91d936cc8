"""Storage: how PostgreSQL is asked to keep the tables."""

from __future__ import annotations

import pytest
from django.db import connection

from timeline.models import ScheduledTask

pytestmark = pytest.mark.django_db


def options():
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = %s", [ScheduledTask._meta.db_table])
        return cursor.fetchone()[0]


class TestVacuum:
    def test_comes_after_a_fiftieth_of_the_tasks(self):
        assert options() == ["autovacuum_vacuum_scale_factor=0.02"]
