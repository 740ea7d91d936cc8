"""The index by which pages count the runs of a timeline."""

from django.db import migrations, models

from timeline.migrations._indexes import AddIndexBesideWrites


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0063_totals"),
    ]

    operations = [
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
