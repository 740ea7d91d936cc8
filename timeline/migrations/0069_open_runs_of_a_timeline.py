"""The index by which the open runs of a timeline are planned."""

from django.db import migrations, models

from timeline.migrations._indexes import AddIndexBesideWrites


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0068_checks_of_tasks_there"),
    ]

    operations = [
        AddIndexBesideWrites(
            model_name="timelinerun",
            index=models.Index(
                models.Func(models.F("timeline"), output_field=models.TextField(), template="(%(expressions)s || '')"),
                "id",
                condition=models.Q(("ended_at__isnull", True)),
                name="timeline_run_open_of_timeline",
            ),
        ),
    ]
