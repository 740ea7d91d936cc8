"""An index by which the next few of those that failed alike are found, however many there are."""

from django.db import migrations, models

from timeline.migrations._indexes import AddIndexBesideWrites


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0064_index_of_runs"),
    ]

    operations = [
        AddIndexBesideWrites(
            model_name="scheduledtask",
            index=models.Index(
                condition=models.Q(("state", "discarded")),
                fields=["fingerprint", "id"],
                name="timeline_task_alike",
            ),
        ),
    ]
