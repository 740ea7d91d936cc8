"""The index by which the latest runs of machines are found."""

from django.db import migrations, models
from django.db.models.lookups import GreaterThan

from timeline.migrations._indexes import AddIndexBesideWrites


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0069_open_runs_of_a_timeline"),
    ]

    operations = [
        AddIndexBesideWrites(
            model_name="timelinerun",
            index=models.Index(
                fields=["id"],
                condition=models.Q(
                    GreaterThan(
                        models.Func(
                            models.F("state"), output_field=models.TextField(), template="(%(expressions)s || '')"
                        ),
                        models.Value(""),
                    )
                ),
                name="timeline_run_of_machine",
            ),
        ),
    ]
