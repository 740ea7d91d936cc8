"""An index of the runs of machines that have ended; where there are no machines, nothing is in it."""

from django.db import migrations, models

from timeline.migrations._indexes import AddIndexBesideWrites


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0050_rows_without_states"),
    ]

    operations = [
        AddIndexBesideWrites(
            model_name="timelinerun",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", False), ("state__gt", "")),
                fields=["entity_label", "entity_id", "timeline", "key", "ended_at"],
                name="timeline_run_last_moved",
            ),
        ),
    ]
