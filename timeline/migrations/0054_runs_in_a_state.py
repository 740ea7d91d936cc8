"""An index of the open runs of machines by their states; where there are no machines, nothing is in it."""

from django.db import migrations, models

from timeline.migrations._indexes import AddIndexBesideWrites


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0053_rows_with_reasons_of_machines"),
    ]

    operations = [
        AddIndexBesideWrites(
            model_name="timelinerun",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True), ("state__gt", "")),
                fields=["timeline", "state", "state_at", "id"],
                name="timeline_run_in_state",
            ),
        ),
    ]
