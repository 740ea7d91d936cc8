"""Indexes by which jobs of a queue are fetched, and found when they are due. They have no other rows. For PostgreSQL."""

from __future__ import annotations

from typing import Any

from django.db import migrations

MAKE = """
CREATE INDEX timeline_ojs_fetch ON timeline_scheduledtask (queue, priority, scheduled_at, id)
WHERE state = 'available' AND limit_key = '' AND task_key LIKE 'ojs.%';
CREATE INDEX timeline_ojs_waiting ON timeline_scheduledtask (queue, scheduled_at, id)
WHERE state IN ('retryable', 'scheduled') AND task_key LIKE 'ojs.%'
"""
DROP = "DROP INDEX timeline_ojs_fetch; DROP INDEX timeline_ojs_waiting"


def make(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001 (the signature of a migration)
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(MAKE, params=None)


def drop(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP, params=None)


class Migration(migrations.Migration):
    dependencies = [("timeline_ojs", "0001_initial"), ("timeline", "0005_take_what_waits")]

    operations = [migrations.RunPython(make, drop)]
