"""The index by which a fetch finds leases that ran out in its queues. It has rows of active jobs only. For PostgreSQL."""

from __future__ import annotations

from typing import Any

from django.db import migrations, router

MAKE = """
CREATE INDEX timeline_ojs_leases ON timeline_scheduledtask (queue, lease_expires_at, id)
WHERE state = 'active' AND task_key LIKE 'ojs.%'
"""
DROP = "DROP INDEX timeline_ojs_leases"


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
    dependencies = [("timeline_ojs", "0002_index_of_queues")]

    operations = [migrations.RunPython(make, drop)]
