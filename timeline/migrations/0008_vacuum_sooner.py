"""
Let PostgreSQL vacuum the tasks after a fiftieth of them has changed rather than a fifth.

What was due leaves entries at the beginning of the indexes that polls read from there: about eight pages for a thousand tasks,
until a vacuum. Of ten million rows a fifth would be half a million tasks.
"""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

TABLE = "timeline_scheduledtask"


def vacuum_sooner(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"ALTER TABLE {TABLE} SET (autovacuum_vacuum_scale_factor = 0.02)")


def vacuum_as_usual(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"ALTER TABLE {TABLE} RESET (autovacuum_vacuum_scale_factor)")


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0007_leaner_indexes"),
    ]

    operations = [migrations.RunPython(vacuum_sooner, vacuum_as_usual)]
