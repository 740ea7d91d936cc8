"""Who has a place, who waits for one, and who needs none. PostgreSQL builds these while others write."""

from django.db import migrations, models

from timeline.migrations._constraints import AddUniqueIndexBesideWrites
from timeline.migrations._indexes import AddIndexBesideWrites


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0044_limits"),
    ]

    operations = [
        AddUniqueIndexBesideWrites(
            model_name="scheduledtask",
            constraint=models.UniqueConstraint(
                condition=models.Q(("slot__gt", 0)),
                fields=("limit_key", "slot"),
                name="timeline_task_slot",
            ),
        ),
        AddIndexBesideWrites(
            model_name="scheduledtask",
            index=models.Index(
                condition=models.Q(("limit_key__gt", ""), ("state", "available")),
                fields=["task_key", "limit_key", "priority", "scheduled_at", "id"],
                name="timeline_task_limited",
            ),
        ),
        AddIndexBesideWrites(
            model_name="scheduledtask",
            index=models.Index(
                condition=models.Q(("limit_key", ""), ("state", "available")),
                fields=["task_key", "priority", "scheduled_at", "id"],
                name="timeline_task_free",
            ),
        ),
        migrations.RemoveIndex(model_name="scheduledtask", name="timeline_task_ready"),
    ]
