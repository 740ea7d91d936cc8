"""Totals: what is counted into figures, and is never deleted. The table begins empty, as figures did."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0062_planned_times"),
    ]

    operations = [
        migrations.CreateModel(
            name="Total",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task_key", models.CharField(max_length=101)),
                ("started", models.PositiveBigIntegerField(default=0)),
                ("completed", models.PositiveBigIntegerField(default=0)),
                ("failed", models.PositiveBigIntegerField(default=0)),
                ("discarded", models.PositiveBigIntegerField(default=0)),
                ("cancelled", models.PositiveBigIntegerField(default=0)),
                ("lateness", models.JSONField(default=list)),
                ("duration", models.JSONField(default=list)),
                ("late_seconds", models.FloatField(default=0)),
                ("taken_seconds", models.FloatField(default=0)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("task_key",), name="timeline_total_task_key")],
            },
        ),
    ]
