"""
Drop, on PostgreSQL, the foreign keys of rows that are written by the thousand.

PostgreSQL checks such a key row by row, each time with a query and a lock of the row named: of what it took to schedule in
bulk that was two fifths. Whoever writes such a row has written the row it names in the same transaction, or holds it;
and triggers, put by ``migrate``, keep what is named from being deleted. SQLite checks keys cheaply, and keeps them.
"""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

# Table and column.
KEYS = (
    ("timeline_timelinerun", "started_by_id"),
    ("timeline_scheduledtask", "run_id"),
    ("timeline_scheduledtask", "cause_id"),
    ("timeline_logentry", "task_id"),
)


def drop_keys(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    connection = schema_editor.connection
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        for table, column in KEYS:
            for name, found in connection.introspection.get_constraints(cursor, table).items():
                if found["foreign_key"] and found["columns"] == [column]:
                    schema_editor.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT "{name}"')


def add_keys(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """With the names that Django gives them, which migrations before this one look for."""
    if schema_editor.connection.vendor != "postgresql":
        return
    models = {model._meta.db_table: model for model in apps.get_app_config("timeline").get_models()}
    for table, column in KEYS:
        [field] = [field for field in models[table]._meta.local_fields if field.column == column]
        key = schema_editor._create_fk_sql(  # type: ignore[attr-defined]  # The stubs do not know it.
            models[table], field, "_fk_%(to_table)s_%(to_column)s"
        )
        schema_editor.execute(key)


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0008_vacuum_sooner"),
    ]

    operations = [migrations.RunPython(drop_keys, add_keys)]
