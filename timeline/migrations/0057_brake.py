"""Brakes: which tasks were let in, and what a hold says of the brake that has made it. The first table begins empty."""

from django.db import migrations, models

from timeline.migrations._constraints import AddConstraintForRowsToCome


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0056_figures"),
    ]

    operations = [
        migrations.CreateModel(
            name="Admission",
            fields=[
                ("task_id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("task_key", models.CharField(max_length=101)),
                ("at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["task_key", "at"], name="timeline_admission_kind")],
            },
        ),
        migrations.AddField(
            model_name="hold",
            name="park_above",
            field=models.PositiveIntegerField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="hold",
            name="park_within",
            field=models.DurationField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="hold",
            name="release_reason",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        AddConstraintForRowsToCome(
            model_name="hold",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("park_above__isnull", True), ("park_within__isnull", True)),
                    models.Q(
                        ("park_above__gte", 1),
                        ("park_within__isnull", False),
                        ("scope", "task"),
                        ("then", "run"),
                        ("until__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="timeline_hold_of_brake",
            ),
        ),
    ]
