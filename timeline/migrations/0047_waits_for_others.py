"""Waits for events of another entity than the task's own, and notes for polls that something happened to one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0046_rows_with_limits"),
    ]

    operations = [
        migrations.AddField(
            model_name="scheduledtask",
            name="awaits_other",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.CreateModel(
            name="Wake",
            fields=[
                ("entity_label", models.CharField(blank=True, default="", max_length=100)),
                ("entity_id", models.CharField(blank=True, default="", max_length=100)),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(blank=True, default="", max_length=100)),
                ("key", models.CharField(blank=True, default="", max_length=200)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("entity_id", ""), ("entity_label", "")),
                            models.Q(
                                models.Q(("entity_label", ""), _negated=True),
                                models.Q(("entity_id", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="timeline_wake_entity_whole",
                    )
                ],
            },
        ),
    ]
