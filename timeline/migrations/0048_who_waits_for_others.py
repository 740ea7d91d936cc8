"""Who waits for events of an entity: its own tasks, or those of others. PostgreSQL builds it while others write."""

from django.db import migrations, models

from timeline.migrations._indexes import AddIndexBesideWrites


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0047_waits_for_others"),
    ]

    operations = [
        AddIndexBesideWrites(
            model_name="scheduledtask",
            index=models.Index(
                condition=models.Q(("awaits__gt", ""), ("state__in", ["retryable", "scheduled"])),
                fields=["awaits_label", "awaits_id", "awaits_other"],
                name="timeline_task_awaited",
            ),
        ),
        migrations.RemoveIndex(model_name="scheduledtask", name="timeline_task_awaits"),
    ]
