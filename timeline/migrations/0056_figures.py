"""Figures by the hour, and how far the log has been counted into them. Both tables begin empty."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0055_bulk_actions"),
    ]

    operations = [
        migrations.CreateModel(
            name="Figure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("hour", models.DateTimeField()),
                ("task_key", models.CharField(max_length=101)),
                ("started", models.PositiveBigIntegerField(default=0)),
                ("completed", models.PositiveBigIntegerField(default=0)),
                ("failed", models.PositiveBigIntegerField(default=0)),
                ("discarded", models.PositiveBigIntegerField(default=0)),
                ("cancelled", models.PositiveBigIntegerField(default=0)),
                ("lateness", models.JSONField(default=list)),
                ("duration", models.JSONField(default=list)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("hour", "task_key"), name="timeline_figure_hour")],
            },
        ),
        migrations.CreateModel(
            name="RollUp",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ("counted", models.BigIntegerField(default=0)),
                ("marked", models.BigIntegerField(default=0)),
                ("horizon", models.BigIntegerField(default=0)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="timeline_rollup_one")],
            },
        ),
    ]
