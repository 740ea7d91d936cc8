from django.db import migrations, models

from timeline.migrations._indexes import AddIndexBesideWrites


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0035_records_of_waits"),
    ]

    operations = [
        AddIndexBesideWrites(
            model_name="scheduledtask",
            index=models.Index(
                condition=models.Q(("awaits__gt", ""), ("state__in", ["retryable", "scheduled"])),
                fields=["awaits_label", "awaits_id"],
                name="timeline_task_awaits",
            ),
        ),
    ]
