"""The index by which the open runs of a timeline are planned."""

from django.db import migrations, models
from django.db.models.expressions import RawSQL
from django.db.models.lookups import Exact

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
                condition=models.Q(
                    Exact(
                        models.Func(
                            models.F("ended_at"),
                            output_field=models.DateTimeField(),
                            template="COALESCE(%(expressions)s, '9999-01-01 00:00:00+00:00')",
                        ),
                        RawSQL("'9999-01-01 00:00:00+00:00'", (), output_field=models.DateTimeField()),
                    )
                ),
                name="timeline_run_open_of_timeline",
            ),
        ),
    ]
