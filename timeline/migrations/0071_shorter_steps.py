"""The record of a step does not say a second time which task it is of."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def say_it_again(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """On the way back: an older database wants it of each."""
    schema_editor.execute("UPDATE timeline_step SET task_id = origin WHERE task_id IS NULL")


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0070_latest_runs_of_machines"),
    ]

    operations = [
        migrations.AlterField(model_name="steprecord", name="task_id", field=models.UUIDField(blank=True, null=True)),
        migrations.RunPython(migrations.RunPython.noop, say_it_again),
    ]
