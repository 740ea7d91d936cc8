"""What a task competes for, and the place that it holds."""

from django.db import migrations, models

import timeline.ids
from timeline.migrations._constraints import AddConstraintForRowsToCome


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0043_cleared_runs"),
    ]

    operations = [
        migrations.CreateModel(
            name="Opening",
            fields=[
                (
                    "id",
                    models.UUIDField(default=timeline.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("limit_key", models.CharField(max_length=100)),
                ("task_key", models.CharField(max_length=101)),
                ("task_id", models.UUIDField()),
                ("slot", models.PositiveSmallIntegerField()),
                ("opened_at", models.DateTimeField()),
                ("reason", models.CharField(max_length=200)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
            ],
            options={
                "verbose_name": "opening of a limit",
                "verbose_name_plural": "openings of limits",
                "permissions": [("open_limit", "Can open a limit that is closed")],
            },
        ),
        migrations.AddField(
            model_name="scheduledtask",
            name="limit_key",
            field=models.CharField(blank=True, db_default="", default="", editable=False, max_length=100),
        ),
        migrations.AddField(
            model_name="scheduledtask",
            name="slot",
            field=models.PositiveSmallIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name="scheduledtask",
            name="held_until",
            field=models.CharField(blank=True, db_default="", default="", editable=False, max_length=7),
        ),
        AddConstraintForRowsToCome(
            model_name="scheduledtask",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("limit_key", ""),
                    ("slot__gt", 0),
                    ("state__in", ["available", "cancelled", "completed", "discarded", "retryable", "scheduled"]),
                    _connector="OR",
                ),
                name="timeline_task_has_slot",
            ),
        ),
    ]
