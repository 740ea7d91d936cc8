"""Indexes by which jobs of a queue are fetched, and found when they are due. They have no other rows. For PostgreSQL."""

from __future__ import annotations

from typing import Any

from django.db import migrations, router

MAKE = """
CREATE INDEX timeline_ojs_fetch ON timeline_scheduledtask (queue, priority, scheduled_at, id)
WHERE state = 'available' AND limit_key = '' AND task_key LIKE 'ojs.%';
CREATE INDEX timeline_ojs_waiting ON timeline_scheduledtask (queue, scheduled_at, id)
WHERE state IN ('retryable', 'scheduled') AND task_key LIKE 'ojs.%'
"""
DROP = "DROP INDEX timeline_ojs_fetch; DROP INDEX timeline_ojs_waiting"


def has_tasks(apps: Any, schema_editor: Any) -> bool:
    """Whether the table of tasks is in this database, and may have indexes of this kind."""
    connection, model = schema_editor.connection, apps.get_model("timeline", "ScheduledTask")
    return connection.vendor == "postgresql" and router.allow_migrate_model(connection.alias, model)


def make(apps: Any, schema_editor: Any) -> None:
    if has_tasks(apps, schema_editor):
        schema_editor.execute(MAKE, params=None)


def drop(apps: Any, schema_editor: Any) -> None:
    if has_tasks(apps, schema_editor):
        schema_editor.execute(DROP, params=None)


class Migration(migrations.Migration):
    dependencies = [("timeline_ojs", "0001_initial"), ("timeline", "0005_take_what_waits")]

    operations = [migrations.RunPython(make, drop)]
