"""Indexes by which pages count: tasks that were cancelled, by reason; those that failed lately; and the runs of a timeline."""

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
        AddIndexBesideWrites(
            model_name="timelinerun",
            index=models.Index(
                models.Func(models.F("timeline"), output_field=models.TextField(), template="(%(expressions)s || '')"),
                models.Func(
                    models.F("ended_at"),
                    output_field=models.DateTimeField(),
                    template="COALESCE(%(expressions)s, '9999-01-01 00:00:00+00:00')",
                ),
                "started_at",
                name="timeline_run_of_timeline",
            ),
        ),
    ]
