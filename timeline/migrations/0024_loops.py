from django.db import migrations, models

from timeline.migrations._constraints import AddConstraintForRowsToCome


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0023_reasons_with_steps"),
    ]

    operations = [
        migrations.AddField(model_name="steprecord", name="place", field=models.JSONField(blank=True, null=True)),
        migrations.AddField(model_name="steprecord", name="done", field=models.BigIntegerField(blank=True, null=True)),
        migrations.AddField(model_name="steprecord", name="total", field=models.BigIntegerField(blank=True, null=True)),
        migrations.AlterField(
            model_name="steprecord",
            name="kind",
            field=models.CharField(
                choices=[("done", "done"), ("begun", "begun"), ("loop", "under way"), ("note", "progress")],
                max_length=5,
            ),
        ),
        migrations.RemoveConstraint(model_name="steprecord", name="timeline_step_kind_known"),
        AddConstraintForRowsToCome(
            model_name="steprecord",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["begun", "done", "loop", "note"])), name="timeline_step_kind_known"
            ),
        ),
    ]
