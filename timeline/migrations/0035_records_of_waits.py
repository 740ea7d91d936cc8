from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from timeline.migrations._constraints import AddConstraintForRowsToCome


def forget_waits(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """On the way back: an older database refuses their records."""
    schema_editor.execute("DELETE FROM timeline_step WHERE kind IN ('wait', 'over')")


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0034_waits"),
    ]

    operations = [
        migrations.AlterField(
            model_name="steprecord",
            name="kind",
            field=models.CharField(
                choices=[
                    ("done", "done"),
                    ("begun", "begun"),
                    ("loop", "under way"),
                    ("wait", "waiting"),
                    ("over", "over"),
                    ("note", "progress"),
                ],
                max_length=5,
            ),
        ),
        migrations.RemoveConstraint(model_name="steprecord", name="timeline_step_kind_known"),
        migrations.RunPython(migrations.RunPython.noop, forget_waits),
        AddConstraintForRowsToCome(
            model_name="steprecord",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["begun", "done", "loop", "note", "over", "wait"])),
                name="timeline_step_kind_known",
            ),
        ),
    ]
