"""Indexes by which pages count tasks that were cancelled, by reason, and those that failed lately."""

from django.db import migrations, models

from timeline.migrations._indexes import AddIndexBesideWrites


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0060_moves_by_a_span"),
    ]

    operations = [
        AddIndexBesideWrites(
            model_name="scheduledtask",
            index=models.Index(
                condition=models.Q(("state", "cancelled")),
                fields=["reason_code", "task_key", "scheduled_at", "id"],
                name="timeline_task_cancelled",
            ),
        ),
        AddIndexBesideWrites(
            model_name="scheduledtask",
            index=models.Index(
                condition=models.Q(("state", "discarded")),
                fields=["task_key", "finished_at", "id"],
                name="timeline_task_failed",
            ),
        ),
    ]
